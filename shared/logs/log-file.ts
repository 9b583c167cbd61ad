/**
 * The log file of a service (`--log-file`), with a bound.
 *
 * Before the file would exceed its limit it is renamed to `<name>.1`, and a new file begins, so at most two files are kept.
 * One service writes to a file, so its size is known without asking the system. A disk that refuses lines costs only
 * those lines; the next line that is written counts them.
 */
import { closeSync, fstatSync, openSync, renameSync, write as writeToFile } from 'node:fs'
import { parse, resolve } from 'node:path'
import { promisify } from 'node:util'
import { messageOf, UsageError } from '../contract/errors.ts'
import { type LineSink, queuedLines } from './log.ts'

/** The log file of the runtime service that a control service with the log file `path` starts. */
export function runtimeLogFile(path: string): string {
  const { dir, name, ext } = parse(resolve(path))
  return `${dir === '/' ? '' : dir}/${name}-runtime${ext}`
}

const LOST = 'log lines dropped: the log file cannot be written'

/** Appends lines to the file at `given`. Throws `UsageError` if it cannot be opened. */
export function fileLines(given: string, maxBytes: number): LineSink {
  const file = new LogFile(resolve(given), maxBytes) // the working directory may change
  return queuedLines({ lost: LOST, put: (lines) => file.put(lines) })
}

const write = promisify(writeToFile)

class LogFile {
  readonly #path: string
  readonly #maxBytes: number
  #fd: number
  #size: number
  /** Lines that the disk refused. */
  #dropped = 0
  /** The disk took only a part of the last lines. */
  #isTorn = false

  constructor(path: string, maxBytes: number) {
    this.#path = path
    this.#maxBytes = maxBytes
    try {
      this.#fd = openSync(path, 'a', 0o600)
      this.#size = fstatSync(this.#fd).size
    } catch (error) {
      throw new UsageError(`cannot open the log file ${path}: ${messageOf(error)} (choose another with --log-file)`)
    }
  }

  async put(lines: string): Promise<void> {
    for (const part of partsOf(lines, this.#maxBytes)) {
      try {
        await this.#append(part)
      } catch {
        this.#dropped += part.split('\n').length - 1
      }
    }
  }

  async #append(lines: string): Promise<void> {
    const bytes = Buffer.from((this.#isTorn ? '\n' : '') + this.#lostLine() + lines)
    if (this.#size > 0 && this.#size + bytes.length > this.#maxBytes) this.#beginAnew()
    for (let at = 0; at < bytes.length; ) {
      this.#isTorn = at > 0 || this.#isTorn
      const { bytesWritten } = await write(this.#fd, bytes, at, bytes.length - at)
      at += bytesWritten
      this.#size += bytesWritten
    }
    this.#isTorn = false
    this.#dropped = 0
  }

  #lostLine(): string {
    if (this.#dropped === 0) return ''
    const line = { time: new Date().toISOString(), level: 'warn', msg: LOST, dropped: this.#dropped }
    return `${JSON.stringify(line)}\n`
  }

  #beginAnew(): void {
    renameSync(this.#path, `${this.#path}.1`)
    const next = openSync(this.#path, 'a', 0o600)
    closeSync(this.#fd)
    this.#fd = next
    this.#size = 0
    this.#isTorn = false
  }
}

/** `lines` in parts of whole lines with at most `maxBytes` each, or of one longer line. */
function* partsOf(lines: string, maxBytes: number): Generator<string> {
  if (Buffer.byteLength(lines) <= maxBytes) return yield lines
  let part = ''
  let bytes = 0
  for (const line of lines.split(/(?<=\n)/)) {
    const length = Buffer.byteLength(line)
    if (bytes > 0 && bytes + length > maxBytes) {
      yield part
      part = ''
      bytes = 0
    }
    part += line
    bytes += length
  }
  yield part
}
