/**
 * Schedules in files: a directory of graph files with a field `schedule`, each of which is a schedule as long as it is there.
 *
 * The directory is read again when it changes, and at least every `SCAN_MS`, because notices of changes are lost with some
 * file systems. A file is read once nobody has written it for `SETTLE_MS`, so that half a file is none. One that cannot be
 * used leaves its schedule as it is. A schedule names its file in the log: after a restart, what has become of the file
 * meanwhile is found by that.
 *
 * Nothing is kept of the contents: a file that another one stands in the way of is read again with each scan.
 *
 * Of replicas that share a database, one reads its directory; the others only know that files have schedules.
 */
import { type FSWatcher, type Stats, watch } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, ServiceError, systemCodeOf } from '../../shared/contract/errors.ts'
import type { ScheduleFile } from '../../shared/contract/schedules.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { KeptSchedules } from '../log/kept-schedules.ts'
import type { OwningFile, ScheduleDefinition } from '../rules/schedule.ts'
import type { Schedules } from './schedules.ts'

/** Milliseconds between two looks into the directory. */
export const SCAN_MS = 10_000

/** Milliseconds after the last change of a file before it is read. */
export const SETTLE_MS = 500

export const MAX_SCHEDULE_FILES = 1_000

const GRAPH_FILE = /^[^.].*\.(?:ya?ml|json)$/i

/** What the files do with schedules. Both throw `ServiceError`. */
export interface ScheduleFileVerbs {
  put(name: string, body: Uint8Array, file: OwningFile): Promise<void>
  delete(name: string, file: OwningFile): Promise<void>
}

interface SeenFile {
  /** Changes with the content. Undefined: it is to be read again. */
  readonly identity: string | undefined
  /** The schedule that it names. Undefined if that is not known. */
  readonly schedule: string | undefined
  /** Of what was put. */
  readonly digest?: string
  readonly error: string | undefined
}

export class ScheduleFiles {
  readonly #directory: string
  readonly #kept: Pick<KeptSchedules, 'filesOf' | 'readsFiles'>
  readonly #schedules: Schedules
  readonly #log: Log
  #verbs: ScheduleFileVerbs | undefined
  /** By name, those that were read. */
  readonly #seen = new Map<string, SeenFile>()
  /** The names of all files at the last look. */
  #present: ReadonlySet<string> = new Set()
  #fault: string | undefined
  #watcher: FSWatcher | undefined
  #timer: Timer | undefined
  #isScanning = false
  /** A change was noticed while the directory was read. */
  #isDirty = false
  #isStopped = false

  /** Without `directory` there are no files. */
  constructor(directory: string, kept: Pick<KeptSchedules, 'filesOf' | 'readsFiles'>, schedules: Schedules, log: Log) {
    this.#directory = directory
    this.#kept = kept
    this.#schedules = schedules
    this.#log = log
  }

  use(verbs: ScheduleFileVerbs): void {
    this.#verbs = verbs
  }

  /** In the order of their names. */
  get all(): readonly ScheduleFile[] {
    const owned = new Map(
      this.#schedules.all.flatMap(({ name, definition: { file } }) => (file ? [[file.name, name]] : [])),
    )
    return [...this.#seen].toSorted(byName).map(([file, { error }]) => {
      const schedule = owned.get(file)
      const { filesOf: replica } = this.#kept
      return {
        file,
        ...(schedule !== undefined && { schedule }),
        ...(error !== undefined && { error }),
        ...(replica !== undefined && { replica }),
      }
    })
  }

  start(): void {
    if (this.#directory === '') return
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, () => this.#scanIn(SETTLE_MS))
      this.#watcher.on('error', () => this.#watcher?.close()) // the scans go on
    } catch {} // the same
    void this.#scan()
  }

  stop(): void {
    this.#isStopped = true
    this.#watcher?.close()
    clearTimeout(this.#timer)
  }

  /**
   * Throws 409 if `file`, or a caller without one, may not put or delete the schedule `name`, because it is that of a file that is
   * there, or that of a caller.
   */
  assertMayPut(name: string, known: ScheduleDefinition | undefined, file: OwningFile | undefined): void {
    if (!this.#isAnywhere || known === undefined) return
    const owner = known.file?.name
    if (file === undefined) {
      if (owner !== undefined)
        throw refusal(`schedule ${name} is that of the file ${owner}: change the file, or remove it`)
    } else if (owner === undefined) {
      throw refusal(`a caller has put the schedule ${name}: delete it first, or give this file another schedule.name`)
    } else if (owner !== file.name && this.#claims(owner, name)) {
      throw refusal(`the schedule ${name} is that of the file ${owner}: give this file another schedule.name`)
    }
  }

  /** Throws 409 if the file of the schedule says whether it is paused. */
  assertMayPause(name: string, file: OwningFile | undefined): void {
    if (!this.#isAnywhere || file?.decidesPause !== true) return
    throw refusal(`the file ${file.name} of schedule ${name} says paused: change it there, or leave it out of the file`)
  }

  /** Whether files have schedules, here or at another replica. */
  get #isAnywhere(): boolean {
    return this.#directory !== '' || this.#kept.filesOf !== undefined
  }

  get #isOver(): boolean {
    return this.#isStopped || !this.#kept.readsFiles
  }

  /** Whether the file is there, and names that schedule as far as is known. */
  #claims(file: string, schedule: string): boolean {
    return this.#present.has(file) && (this.#seen.get(file)?.schedule ?? schedule) === schedule
  }

  #scanIn(ms: number): void {
    if (this.#isStopped) return
    if (this.#isScanning) {
      this.#isDirty = true
      return
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#scan(), ms)
    this.#timer.unref()
  }

  async #scan(): Promise<void> {
    this.#isScanning = true
    this.#isDirty = false
    if (!this.#kept.readsFiles) this.#seen.clear()
    const isSettled = await this.#readAll().catch((error) => {
      this.#tellFault(messageOf(error))
      return true
    })
    this.#isScanning = false
    this.#scanIn(isSettled && !this.#isDirty ? SCAN_MS : SETTLE_MS)
  }

  /** False if a file may still be written, or this service may have to read the directory soon. */
  async #readAll(): Promise<boolean> {
    if (!this.#kept.readsFiles) return this.#kept.filesOf !== undefined
    const names = (await readdir(this.#directory)).filter((name) => GRAPH_FILE.test(name)).toSorted()
    this.#fault = undefined
    this.#present = new Set(names)
    for (const file of this.#seen.keys()) if (!this.#present.has(file)) this.#seen.delete(file)
    let isSettled = true
    for (const [index, file] of names.entries()) {
      if (this.#isOver) return true
      const found = await stat(join(this.#directory, file)).catch(() => undefined)
      if (found === undefined) continue // removed just now
      const identity = `${found.dev} ${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`
      if (this.#isAsRead(this.#seen.get(file), identity)) continue
      if (index >= MAX_SCHEDULE_FILES) {
        this.#note(file, { identity: undefined, schedule: undefined, error: TOO_MANY })
        break // the next ones are not listed either
      }
      if (Math.abs(Date.now() - Math.max(found.mtimeMs, found.ctimeMs)) < SETTLE_MS) isSettled = false
      else this.#note(file, await this.#take(file, found, identity))
    }
    await this.#removeOrphans()
    return isSettled
  }

  /** Another replica may have had its own file in the meantime. */
  #isAsRead(seen: SeenFile | undefined, identity: string): boolean {
    if (seen?.identity !== identity) return false
    return seen.error !== undefined || this.#schedules.get(seen.schedule!)?.definition.file?.digest === seen.digest
  }

  #note(file: string, seen: SeenFile): void {
    const { error } = seen
    if (error !== undefined && error !== this.#seen.get(file)?.error)
      this.#log.error('a file of a schedule cannot be used', { file, cause: error })
    this.#seen.set(file, seen)
  }

  /** Reads the file and puts its schedule. */
  async #take(file: string, found: Stats, identity: string): Promise<SeenFile> {
    let schedule: string | undefined
    try {
      if (!found.isFile()) throw new Error('it is no file')
      const { readScheduleFile } = await import('./schedule-file.ts')
      const read = await readScheduleFile(join(this.#directory, file), { file, size: found.size })
      schedule = read.name
      const before = this.#schedules.get(schedule)?.definition
      const digest = Bun.hash(read.body).toString(36)
      const owner = { name: file, decidesPause: read.decidesPause, digest }
      await this.#verbs!.put(schedule, read.body, owner).catch((error) => {
        throw error instanceof ServiceError ? new ServiceError(error.status, read.said(error.message)) : error
      })
      if (this.#schedules.get(schedule)?.definition !== before)
        this.#log.info('a schedule is from its file', { schedule, file })
      return { identity, schedule, digest, error: undefined }
    } catch (error) {
      // What another schedule or a full disk stands in the way of may succeed later.
      const isForNow = (error instanceof ServiceError && error.status !== 400) || systemCodeOf(error) !== undefined
      return { identity: isForNow ? undefined : identity, schedule, error: messageOf(error) }
    }
  }

  /** Deletes the schedules whose files are gone, or name another one now. */
  async #removeOrphans(): Promise<void> {
    for (const { name, definition } of this.#schedules.all) {
      const { file } = definition
      if (file === undefined || this.#isOver || this.#claims(file.name, name)) continue
      try {
        await this.#verbs!.delete(name, file)
        this.#log.info('the file of a schedule is gone', { schedule: name, file: file.name })
      } catch {} // the disk takes no writes, which is told: the next look tries again
    }
  }

  #tellFault(cause: string): void {
    if (cause === this.#fault) return
    this.#fault = cause
    this.#log.error('the directory of schedules cannot be read', { cause })
  }
}

const TOO_MANY = `there are more than ${MAX_SCHEDULE_FILES} files: those after it are not read either`

const refusal = (message: string) => new ServiceError(409, message)

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1)
