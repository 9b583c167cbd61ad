/** A program that outlives the client and its terminal: it leads a session of its own. */
import { fstatSync, readSync } from 'node:fs'
import { basename } from 'node:path'
import type { Environment } from '../own-services/state-dir.ts'
import { lastLines } from './attempt.ts'

/** Bytes at the end of the output that are read for its last lines. */
const TAIL_BYTES = 16 * 1024

export interface DetachedProcess {
  readonly pid: number
  /** Resolves when the program ends, with a sentence on its end and its last output. */
  readonly ended: Promise<string>
}

export interface DetachedOptions {
  /** The whole environment of the program. */
  readonly env: Environment
  /** Descriptor of a file that is open for appending and reading. It stays open, to read the last output. */
  readonly output: number
}

/** Starts `command`. Throws the system's error. */
export function startDetached(command: readonly string[], { env, output }: DetachedOptions): DetachedProcess {
  const from = fstatSync(output).size
  const child = Bun.spawn([...command], {
    env: { ...env },
    detached: true,
    stdin: 'ignore',
    stdout: output,
    stderr: output,
  })
  child.unref()
  const ended = async () => {
    await child.exited
    const how = child.signalCode === null ? `with exit code ${child.exitCode}` : `by ${child.signalCode}`
    const words = lastLines(readTail(output, from))
    return `${basename(command[0]!)} ended ${how}, ${words === '' ? 'without a word' : `its last log lines:\n${words}`}`
  }
  return { pid: child.pid, ended: ended() }
}

/** The end of an open file, at most `TAIL_BYTES`, and nothing before byte `from`. */
function readTail(fd: number, from: number): string {
  const { size } = fstatSync(fd)
  const start = Math.max(from, size - TAIL_BYTES)
  const bytes = Buffer.alloc(Math.max(0, size - start))
  return bytes.subarray(0, readSync(fd, bytes, 0, bytes.byteLength, start)).toString('utf8')
}
