/**
 * The user ids of sandboxes, where the service is root: one for each sandbox that runs, never shared by two.
 *
 * A user may end its processes, read their memory, and owns the user namespaces that it made. So two sandboxes with one user
 * would be at each other's mercy wherever a namespace does not keep them apart.
 *
 * Services of one host share the range. Each id has a lock file in `/run`, which a service takes (flock) when it needs one more
 * id, and keeps until it ends. Sandboxes outlive their service, so an id that a process of the host bears is not taken either.
 * Nor is one that a process is about to get: the lock file names the task, whose launcher holds the lock of its directory, and
 * the data directory, whose lock the fork server holds until it has started what a killed service asked for.
 */
import { closeSync, constants, ftruncateSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import { isHeldSince, LOCK_FILES, tryLock } from '../../shared/files/directory-lock.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { UidRange } from '../config.ts'
import { readText } from './read-text.ts'

const LOCKS = '/run/taskmill-sandbox-uids'

/** Milliseconds until ids that others held are tried again. */
const RETRY_MS = 1_000

/** The holder of the id of a sandbox that is tried. No task has this name. */
export const TRIAL = '+trial'

/** The service that starts sandboxes. */
export interface UidUser {
  readonly dataDir: string
  readonly taskDirOf: (taskId: string) => string
  readonly log: Log
}

/** What a lock file says: who may be about to start a sandbox with this id. */
interface Use {
  readonly pid: number
  readonly data_dir: string
  readonly task_dir: string
}

export class SandboxUids {
  readonly #range: UidRange
  readonly #locks: string
  /** Descriptors of the lock files of this service, by id. Undefined where there can be no locks. */
  readonly #claimed = new Map<number, number | undefined>()
  /** Claimed and in no use; the one that is free the longest comes first. */
  readonly #free: number[] = []
  readonly #held = new Map<string, number>()
  #next: number
  #retryMs = 0
  readonly #user: UidUser | undefined
  #isWarned = false

  /** `user` is absent where sandboxes end before their starter. */
  constructor(range: UidRange, user?: UidUser, locks = LOCKS) {
    this.#range = range
    this.#user = user
    this.#locks = locks
    this.#next = range.first
  }

  /** Whether a sandbox could start. Claims one more id if need be. */
  get hasFree(): boolean {
    return this.#free.length > 0 || this.#claimOne()
  }

  /** The id of a sandbox that has one: from `take` to `leave`. */
  of(holder: string): number | undefined {
    return this.#held.get(holder)
  }

  /** Throws if none is free. Callers check before. */
  take(holder: string): number {
    const uid = this.hasFree ? this.#free.shift() : undefined
    if (uid === undefined) throw new Error(`no user id is free for ${holder} (--sandbox-uids)`)
    this.#hold(holder, uid)
    return uid
  }

  /**
   * For the sandbox that is tried at the start, until `release(TRIAL)`. Where others have all ids, as after the restart of a
   * service with a single one, it has the first for a moment, in a pid namespace of its own.
   */
  forTrial(): number {
    return this.hasFree ? this.take(TRIAL) : this.#range.first
  }

  /**
   * A sandbox of an earlier service has this id, whether that is in the range or not. If it ended meanwhile, another service
   * may have claimed the id.
   */
  restore(holder: string, uid: number): void {
    const free = this.#free.indexOf(uid)
    if (free >= 0) this.#free.splice(free, 1)
    if (!this.#claimed.has(uid)) this.#claim(uid)
    this.#hold(holder, uid)
  }

  #hold(holder: string, uid: number): void {
    this.#held.set(holder, uid)
    const fd = this.#claimed.get(uid)
    if (fd === undefined || this.#user === undefined || holder === TRIAL) return
    const { dataDir, taskDirOf } = this.#user
    const use: Use = { pid: process.pid, data_dir: dataDir, task_dir: taskDirOf(holder) }
    try {
      ftruncateSync(fd)
      writeSync(fd, JSON.stringify(use))
    } catch (error) {
      this.#warn(error)
    }
  }

  #warn(error: unknown): void {
    if (this.#isWarned) return
    this.#isWarned = true
    this.#user?.log.warn(
      'user ids of sandboxes are not locked: give other services of this host other --sandbox-uids',
      {
        cause: messageOf(error),
      },
    )
  }

  /** Whether all that bears the id is ours: no other service has claimed it. */
  isOurs(uid: number): boolean {
    return this.#claimed.has(uid)
  }

  /** The sandbox has ended. Nobody gets its id before `free`, whoever gets its name. */
  leave(holder: string): number | undefined {
    const uid = this.#held.get(holder)
    this.#held.delete(holder)
    return uid
  }

  /** For a sandbox that nothing is left of. */
  release(holder: string): void {
    const uid = this.leave(holder)
    if (uid !== undefined) this.free(uid)
  }

  /** Nothing bears the id any more, which its sandbox has left. */
  free(uid: number): void {
    if (this.#claimed.has(uid) && this.#isInRange(uid)) this.#free.push(uid)
  }

  #isInRange(uid: number): boolean {
    return uid >= this.#range.first && uid <= this.#range.last
  }

  #claimOne(): boolean {
    if (performance.now() < this.#retryMs) return false
    let borne: ReadonlySet<number> | undefined
    for (; this.#next <= this.#range.last; this.#next++) {
      const uid = this.#next
      if (this.#claimed.has(uid) || !this.#claim(uid)) continue
      borne ??= uidsOfProcesses()
      if (!borne.has(uid) && !this.#isPromised(uid)) {
        this.#free.push(uid)
        this.#next++
        return true
      }
      this.#unclaim(uid)
    }
    this.#next = this.#range.first
    this.#retryMs = performance.now() + RETRY_MS
    return false
  }

  /** False if another service has it. */
  #claim(uid: number): boolean {
    let fd: number | undefined
    try {
      mkdirSync(this.#locks, { mode: 0o700, recursive: true })
      fd = openSync(join(this.#locks, String(uid)), 'a', 0o600)
    } catch (error) {
      this.#warn(error) // most hosts without a writable /run are containers with one service
    }
    if (fd !== undefined && !tryLock(fd)) {
      closeSync(fd)
      return false
    }
    this.#claimed.set(uid, fd)
    return true
  }

  /** Whether another service, which has ended, may still start a sandbox with the id that we claimed. */
  #isPromised(uid: number): boolean {
    if (this.#claimed.get(uid) === undefined) return false
    const use = useIn(join(this.#locks, String(uid)))
    return use !== undefined && (isHeldSince(use.data_dir, LOCK_FILES.runtime, use.pid) || isLocked(use.task_dir))
  }

  #unclaim(uid: number): void {
    const fd = this.#claimed.get(uid)
    if (fd !== undefined) closeSync(fd)
    this.#claimed.delete(uid)
  }
}

function useIn(path: string): Use | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Use
  } catch {
    return undefined // no task has had it, or the machine was stopped meanwhile
  }
}

/** Whether a launcher holds the directory of its task. */
function isLocked(directory: string): boolean {
  let fd: number
  try {
    fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY)
  } catch {
    return false // the task is gone
  }
  try {
    return !tryLock(fd)
  } finally {
    closeSync(fd)
  }
}

/** All user ids that processes of this host have: real, effective, saved, and that of the file system. */
export function uidsOfProcesses(): ReadonlySet<number> {
  const uids = new Set<number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const line = /^Uid:\t(.*)$/m.exec(readText(`/proc/${name}/status`) ?? '')?.[1]
    for (const uid of line?.split('\t') ?? []) uids.add(Number(uid))
  }
  return uids
}
