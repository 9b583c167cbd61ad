/**
 * Looks at paths that callers name. They may be on file systems that never answer: a lost file server, a broken disk.
 *
 * Such a look blocks its thread until the file system answers. Bun runs asynchronous file calls on as many threads as
 * there are processors, and the syncs of the database need those: on two processors, two blocked looks stopped the
 * service. So looks have threads (workers) of their own, which cannot be ended while a file system blocks them.
 *
 * One hanging mount blocks one thread, whatever paths lead to it: looks start one after another, and each reports the
 * place that it accesses next. A look that takes longer than SLOW_MS lets the next one start, which stops before that
 * place until the slow look is back. A look that times out is given up and its place remembered: paths that lead there
 * are refused at once until the look returns. At most MAX_LOOKS places are accessed at a time.
 */
import { readFileSync } from 'node:fs'
import { messageOf } from '../../shared/contract/errors.ts'
import { isWithin } from '../../shared/files/is-within.ts'
import type { LookAnswer, LookRequest, PathInfo } from './path-look.ts'

/** Milliseconds that a path may take to answer. */
export const LOOK_TIMEOUT_MS = 2_000

/** Milliseconds after which a look blocks others only at its own place. A look takes some 40 µs, a new thread 5 ms. */
const SLOW_MS = 20

/**
 * Places accessed at a time, including those that do not answer. Each occupies a thread: about 5 MB for the first, 3 MB
 * for others.
 */
export const MAX_LOOKS = 8

/** Idle threads kept for the next look. */
const MAX_IDLE = 1

/** The part of a `Worker` that looks use. */
export interface LookThread<Answer = PathInfo> {
  onmessage: ((event: MessageEvent<LookAnswer<Answer>>) => void) | null
  onerror: ((event: ErrorEvent) => void) | null
  postMessage(request: LookRequest): void
  terminate(): void
}

/** The path did not answer in time, now or when its place was last accessed. */
export class PathTimeout extends Error {}

/** All threads are blocked. */
export class NoThread extends Error {}

interface Look<Answer> {
  readonly path: string
  readonly answer: PromiseWithResolvers<Answer>
  /** The real path that it accessed last. Undefined before the first. */
  asking: string | undefined
  /** The slow place, which others avoid. */
  slowAt: string | undefined
  isGivenUp: boolean
}

export interface PathLooksOptions {
  readonly timeoutMs?: number
  readonly slowMs?: number
  /** From a real path that does not answer to the path of all that does not answer with it. */
  readonly placeOf?: (realPath: string) => string
}

export class PathLooks<Answer = PathInfo> {
  readonly #start: () => LookThread<Answer>
  readonly #timeoutMs: number
  readonly #slowMs: number
  readonly #placeOf: (realPath: string) => string
  readonly #idle: LookThread<Answer>[] = []
  /** Looks that callers wait for, by path: callers with the same path share one. */
  readonly #awaited = new Map<string, Look<Answer>>()
  /** Looks without a thread, oldest first. */
  #queue: Look<Answer>[] = []
  /** Looks that stopped before a slow place. */
  #blocked: Look<Answer>[] = []
  /** Looks that have a thread. */
  readonly #busy = new Set<Look<Answer>>()
  /** The look that has just started. The next one waits for it. */
  #quick: Look<Answer> | undefined

  /** `start` starts a thread that answers each path it is sent, in order (`servePathChecks`). */
  constructor(
    start: () => LookThread<Answer>,
    { timeoutMs = LOOK_TIMEOUT_MS, slowMs = SLOW_MS, placeOf: place = placeOf }: PathLooksOptions = {},
  ) {
    this.#start = start
    this.#timeoutMs = timeoutMs
    this.#slowMs = slowMs
    this.#placeOf = place
  }

  /** Rejects with `PathTimeout` or `NoThread`. */
  async lookAt(path: string): Promise<Answer> {
    const look = this.#awaited.get(path) ?? this.#ask(path)
    return await look.answer.promise
  }

  /** Ends the idle threads. */
  close(): void {
    for (const thread of this.#idle.splice(0)) thread.terminate()
  }

  #ask(path: string): Look<Answer> {
    const look: Look<Answer> = {
      ...{ path, answer: Promise.withResolvers<Answer>() },
      ...{ asking: undefined, slowAt: undefined, isGivenUp: false },
    }
    const timer = setTimeout(() => this.#giveUp(look), this.#timeoutMs)
    const end = () => {
      clearTimeout(timer)
      if (this.#awaited.get(path) === look) this.#awaited.delete(path)
    }
    look.answer.promise.then(end, end)
    this.#awaited.set(path, look)
    this.#queue.push(look)
    this.#begin()
    return look
  }

  #giveUp(look: Look<Answer>): void {
    look.isGivenUp = true
    if (this.#busy.has(look) || this.#blocked.includes(look)) {
      look.answer.reject(new PathTimeout())
      this.#blocked = this.#blocked.filter((blocked) => blocked !== look)
      return
    }
    this.#queue = this.#queue.filter((queued) => queued !== look)
    const places = [...this.#busy].map(({ path, slowAt }) => slowAt ?? path).join(', ')
    look.answer.reject(new NoThread(`${this.#busy.size} looks are under way, without an answer from: ${places}`))
  }

  #begin(): void {
    while (this.#quick === undefined && this.#busy.size < MAX_LOOKS) {
      const look = this.#queue.shift()
      if (look === undefined) return
      this.#busy.add(look)
      this.#quick = look
      look.asking = undefined
      this.#expectQuick(look)
      try {
        this.#run(look, this.#idle.pop() ?? this.#start())
      } catch (error) {
        this.#afterLook(look)
        look.answer.reject(new NoThread(messageOf(error)))
      }
    }
  }

  /** Starts the next look once this one is slow at a known place. */
  #expectQuick(look: Look<Answer>): void {
    setTimeout(() => {
      if (this.#quick !== look) return
      if (look.asking === undefined && !look.isGivenUp) {
        this.#expectQuick(look) // its thread has not started
        return
      }
      if (look.asking !== undefined) look.slowAt = this.#placeOf(look.asking)
      this.#quick = undefined
      this.#begin()
    }, this.#slowMs)
  }

  #run(look: Look<Answer>, thread: LookThread<Answer>): void {
    const done = () => {
      if (this.#idle.length < MAX_IDLE) this.#idle.push(thread)
      else thread.terminate()
      this.#afterLook(look)
    }
    thread.onmessage = ({ data }) => {
      if ('asking' in data) this.#asks(look, data.asking)
      else if ('avoided' in data) {
        this.#blockedAt(look, data.avoided)
        done()
      } else {
        look.answer.resolve(data.look)
        done()
      }
    }
    thread.onerror = ({ message }) => {
      // The thread may still answer. Its answer must not count for another look.
      thread.onmessage = null
      thread.onerror = null
      thread.terminate()
      look.answer.reject(new NoThread(message))
      this.#afterLook(look)
    }
    thread.postMessage({ path: look.path, avoid: [...this.#busy].flatMap(({ slowAt }) => slowAt ?? []) })
  }

  #asks(look: Look<Answer>, realPath: string): void {
    look.asking = realPath
    if (look.slowAt === undefined) return
    const place = this.#placeOf(realPath)
    if (place === look.slowAt) return
    look.slowAt = place
    this.#retryBlocked()
    this.#begin()
  }

  #blockedAt(look: Look<Answer>, place: string): void {
    if (look.isGivenUp) return
    const others = [...this.#busy].filter(({ slowAt }) => slowAt === place)
    if (others.length === 0) this.#queue.push(look)
    else if (others.some(({ isGivenUp }) => isGivenUp)) look.answer.reject(new PathTimeout())
    else this.#blocked.push(look)
  }

  #afterLook(look: Look<Answer>): void {
    this.#busy.delete(look)
    if (this.#quick === look) this.#quick = undefined
    if (look.slowAt !== undefined) this.#retryBlocked()
    this.#begin()
  }

  /** A slow place has answered. */
  #retryBlocked(): void {
    this.#queue.push(...this.#blocked)
    this.#blocked = []
  }
}

/** File systems whose directories are separate mounts, each of which may hang alone. */
const AUTOMOUNTER = 'autofs'

/**
 * The part of the file system that hangs when the real path `path` does: its mount point, or the path alone where the
 * mount is the root or an automounter's. Asks only the kernel, never the file system. `mountInfo` is the text of
 * /proc/self/mountinfo (proc_pid_mountinfo(5)).
 */
export function placeOf(path: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): string {
  let place = { path: '/', type: '' }
  for (const line of mountInfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ')
    const point = unescaped(mount.split(' ')[4] ?? '')
    // Of two mounts at the same path, the later one is visible.
    if (point !== '' && isWithin(path, point) && point.length >= place.path.length)
      place = { path: point, type: source.split(' ')[0] ?? '' }
  }
  return place.path === '/' || place.type === AUTOMOUNTER ? path : place.path
}

const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
