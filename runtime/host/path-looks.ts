/**
 * Looks at paths that callers name, on file systems that may never answer: a file server that is gone, a lost disk.
 *
 * A look at such a path holds its thread until the file system answers. Bun runs asynchronous calls on as many threads as
 * there are processors, and the syncs of the database need those: on two processors two looks that hung stopped the
 * service. So looks have threads of their own (workers), which cannot be ended while a file system holds them.
 *
 * One mount that hangs holds one thread, whatever the paths that lead to it: looks begin one after the other, and each says
 * which place it asks next. A look that takes longer than SLOW_MS lets the next one begin, which stops before that place and
 * waits until the slow one is back. A look that is not done in time is given up, and its place remembered: whatever leads
 * there is refused at once, until the look returns. At most MAX_LOOKS places are looked at.
 */
import { messageOf } from '../../shared/errors.ts'
import { placeOf } from './mount-points.ts'
import type { LookAnswer, LookRequest, PathInfo } from './path-look.ts'

/** Milliseconds that a path may take to answer. */
export const LOOK_TIMEOUT_MS = 2_000

/** Milliseconds after which a look holds up those at its own place alone. A look takes some 40 µs, a new thread 5 ms. */
const SLOW_MS = 20

/** Places that are looked at at a time, those among them that do not answer. Each holds a thread: about 5 MB for the first, 3 MB for others. */
export const MAX_LOOKS = 8

/** Threads kept for the next look, with their memory. */
const MAX_IDLE = 1

/** The part of a `Worker` that looks need. */
export interface LookThread<Answer = PathInfo> {
  onmessage: ((event: MessageEvent<LookAnswer<Answer>>) => void) | null
  onerror: ((event: ErrorEvent) => void) | null
  postMessage(request: LookRequest): void
  terminate(): void
}

/** The path did not answer within the time, now or when its place was last looked at. */
export class PathTimeout extends Error {}

/** There is no thread to look with. */
export class NoThread extends Error {}

interface Look<Answer> {
  readonly path: string
  readonly answer: PromiseWithResolvers<Answer>
  /** The real path that it asked for last; undefined before there is one. */
  asking: string | undefined
  /** Where it takes long; others keep away from there. */
  slowAt: string | undefined
  isGivenUp: boolean
}

export interface PathLooksOptions {
  readonly timeoutMs?: number
  readonly slowMs?: number
  /** What else does not answer when a real path does not: the path of all that. */
  readonly placeOf?: (realPath: string) => string
}

export class PathLooks<Answer = PathInfo> {
  readonly #start: () => LookThread<Answer>
  readonly #timeoutMs: number
  readonly #slowMs: number
  readonly #placeOf: (realPath: string) => string
  readonly #idle: LookThread<Answer>[] = []
  /** Looks that somebody waits for, by their paths: who names the same path shares the look. */
  readonly #awaited = new Map<string, Look<Answer>>()
  /** Looks without a thread, in the order in which they came. */
  #queue: Look<Answer>[] = []
  /** Looks that stopped before a place where another one takes long. */
  #blocked: Look<Answer>[] = []
  /** Looks that have a thread. */
  readonly #busy = new Set<Look<Answer>>()
  /** The look after which the next one begins: it has just begun. */
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

  /** Ends the threads that are kept. */
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

  /** Lets the next look begin once this one takes long at a place that is known. */
  #expectQuick(look: Look<Answer>): void {
    setTimeout(() => {
      if (this.#quick !== look) return
      if (look.asking === undefined && !look.isGivenUp) {
        this.#expectQuick(look) // its thread has not begun
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
      // It may still answer: that must not count as the end of another look.
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
    if (look.slowAt !== undefined) look.slowAt = this.#placeOf(realPath) // it was slow, and went on
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
    if (look.slowAt !== undefined) {
      this.#queue.push(...this.#blocked)
      this.#blocked = []
    }
    this.#begin()
  }
}
