/**
 * `<data-dir>/mcp-processes.json`: the processes of local MCP servers. If the service is killed, the next start ends
 * them. The file is written and renamed without a sync, because it need not survive a power cut.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { identify, isProcessIdentity, type ProcessIdentity } from '../../shared/process/processes.ts'

export class ProcessRecord {
  readonly #path: string
  readonly #log: Log
  readonly #running = new Map<number, ProcessIdentity>()
  /** The processes that an earlier run recorded. */
  readonly earlier: readonly ProcessIdentity[]

  constructor(dataDir: string, log: Log) {
    this.#path = join(dataDir, 'mcp-processes.json')
    this.#log = log
    this.earlier = readRecord(this.#path)
  }

  /** Called when all processes of the earlier run have ended. */
  forgetEarlier(): void {
    if (this.earlier.length > 0) this.#write()
  }

  add(pid: number): void {
    const identity = identify(pid)
    if (identity === undefined) return // the process has ended, or the system has no process start times
    this.#running.set(pid, identity)
    this.#write()
  }

  remove(pid: number): void {
    if (this.#running.delete(pid)) this.#write()
  }

  /** Ignores errors of the disk, because processes are also found by the mark in their environment. */
  #write(): void {
    try {
      if (this.#running.size === 0) {
        rmSync(this.#path, { force: true })
        return
      }
      writeFileSync(`${this.#path}.new`, JSON.stringify([...this.#running.values()]), { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch (error) {
      this.#log.warn('cannot put the MCP servers that run on record', { path: this.#path, cause: messageOf(error) })
    }
  }
}

/** The recorded processes. None if the file cannot be read or parsed. */
function readRecord(path: string): ProcessIdentity[] {
  try {
    const record: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return Array.isArray(record) ? record.filter(isProcessIdentity) : []
  } catch {
    return []
  }
}
