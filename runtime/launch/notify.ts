/**
 * Reads the reports of launchers and their fork server from one FIFO, a pipe with a name by which the next service finds
 * it again, one line per event.
 *
 * The FIFO stays when the service ends. As long as a launcher has it open, it keeps up to 64 KB of lines for the next
 * service; otherwise they are lost. So a line is only a hint to read a record now. A starting service reads all records
 * anyway, after it has opened the FIFO.
 */
import { ptr } from 'bun:ffi'
import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs'
import { loadLibc } from '../../shared/process/libc.ts'

export type LauncherEvent =
  /** The program runs. Not reported for a program that ends soon after its start. */
  | {
      readonly event: 'started'
      readonly task_id: string
      readonly launcher_pid: number
      readonly pid: number
      readonly pgid: number
      readonly start_time: number
      readonly started_ms: number
    }
  /** The wall time is over, and the task was asked to end. */
  | { readonly event: 'timeout'; readonly task_id: string }
  /** The outcome is in place. */
  | { readonly event: 'ended'; readonly task_id: string }
  /** The launcher could not even make a record, so there will be no outcome. */
  | { readonly event: 'failed'; readonly task_id: string; readonly step: string; readonly errno: number }
  /** From the fork server: the launch of this number is over, or never began. The only line that is never lost. */
  | {
      readonly event: 'gone'
      readonly task_id: string
      readonly launch: number
      /** 128 + n if signal n ended the launcher or its task. */
      readonly exit_code: number
      /** Whether the launcher itself was killed. All that it left behind is gone as well. */
      readonly is_killed: boolean
    }

const ID = '([A-Za-z0-9._-]{1,128})'
const COUNT = '(\\d{1,15})'
const STARTED = new RegExp(`^started ${ID} ${COUNT} ${COUNT} ${COUNT} ${COUNT} ${COUNT}$`)
const TIMEOUT = new RegExp(`^timeout ${ID}$`)
const ENDED = new RegExp(`^ended ${ID}$`)
const FAILED = new RegExp(`^failed ${ID} ([a-z_]+) ${COUNT}$`)
const GONE = new RegExp(`^gone ${ID} ${COUNT} ${COUNT}( killed)?$`)

/** Pure. Undefined for a line that no launcher writes. */
export function parseEvent(line: string): LauncherEvent | undefined {
  const started = STARTED.exec(line)
  if (started !== null) {
    const [, task_id, launcher_pid, pid, pgid, start_time, started_ms] = started
    const numbers = { launcher_pid: Number(launcher_pid), pid: Number(pid), pgid: Number(pgid) }
    return {
      event: 'started',
      task_id: task_id!,
      ...numbers,
      start_time: Number(start_time),
      started_ms: Number(started_ms),
    }
  }
  const ended = ENDED.exec(line)
  if (ended !== null) return { event: 'ended', task_id: ended[1]! }
  const timeout = TIMEOUT.exec(line)
  if (timeout !== null) return { event: 'timeout', task_id: timeout[1]! }
  const gone = GONE.exec(line)
  if (gone !== null) {
    const [, task_id, launch, exit_code, killed] = gone
    const numbers = { launch: Number(launch), exit_code: Number(exit_code) }
    return { event: 'gone', task_id: task_id!, ...numbers, is_killed: killed !== undefined }
  }
  const failed = FAILED.exec(line)
  return failed === null
    ? undefined
    : { event: 'failed', task_id: failed[1]!, step: failed[2]!, errno: Number(failed[3]) }
}

/** Bytes without a line end that are discarded: no launcher writes such a line. */
const MAX_LINE_BYTES = 4_096

const readerOf = (fd: number) => Bun.file(fd).stream().getReader()

export class NotifyPipe {
  /** For launchers to inherit. */
  readonly fd: number
  private readonly reader: ReturnType<typeof readerOf>
  private readonly reading: Promise<void>

  /** Opens the FIFO at `path`, after making it if it is missing, and calls `onEvent` for each event. */
  constructor(path: string, onEvent: (event: LauncherEvent) => void) {
    this.fd = openFifo(path)
    this.reader = readerOf(this.fd)
    this.reading = this.read(onEvent)
  }

  private async read(onEvent: (event: LauncherEvent) => void): Promise<void> {
    const decoder = new TextDecoder()
    let begun = ''
    for (;;) {
      const { done, value } = await this.reader.read()
      if (done) return
      const lines = (begun + decoder.decode(value, { stream: true })).split('\n')
      begun = lines.pop()!
      if (begun.length > MAX_LINE_BYTES) begun = ''
      for (const line of lines) {
        const event = parseEvent(line)
        if (event !== undefined) onEvent(event)
      }
    }
  }

  /** Stops reading. The FIFO stays. */
  async close(): Promise<void> {
    await this.reader.cancel()
    await this.reading
    closeSync(this.fd)
  }
}

const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants

/** Read and write for the owner. */
const MODE = 0o600

const load = () => loadLibc({ mkfifo: { args: ['ptr', 'u32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/**
 * Makes a FIFO at `path` unless there is one, and opens it for reading and writing without blocking. So it always has a
 * reader and a writer. Throws the system's error.
 */
function openFifo(path: string): number {
  if (libc === undefined) libc = load()
  const isMade = libc !== null && libc.mkfifo(ptr(Buffer.from(`${path}\0`)), MODE) === 0
  if (!isMade && !isFifo(path)) throw reasonAgainst(path)
  return openSync(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW)
}

/** A call into the C library does not report errno. Making a regular file there fails for the same reason. */
function reasonAgainst(path: string): Error {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return new Error(`${path} is there and is no FIFO`)
    closeSync(openSync(path, 'wx', MODE))
    unlinkSync(path)
    return new Error(`cannot make the FIFO ${path}: its file system has none`)
  } catch (error) {
    return error as Error
  }
}

const isFifo = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false
