/**
 * `<data-dir>/mcp-processes.json`: which processes are MCP servers of ours, so that the next start can end them should
 * the service be killed. A plain write and a rename: it has to outlive us, not the machine.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { identify, isProcessIdentity, type ProcessIdentity } from '../../shared/processes.ts'

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

  /** To be called when nothing of the earlier run is left. */
  forgetEarlier(): void {
    if (this.earlier.length > 0) this.#write()
  }

  add(pid: number): void {
    const identity = identify(pid)
    if (identity === undefined) return // ended already, or a system that cannot tell
    this.#running.set(pid, identity)
    this.#write()
  }

  remove(pid: number): void {
    if (this.#running.delete(pid)) this.#write()
  }

  /** A disk that does not take it is no reason to refuse work: the processes also carry a mark in their environment. */
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
