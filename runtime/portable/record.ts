/** Writes the record of a task as outcome.h says. */
import { closeSync, constants, fdatasyncSync, ftruncateSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { LaunchedProcess, Outcome } from '../launch/outcome.ts'

/** More than any record needs. Allocated before the task starts. */
const ROOM_BYTES = 4_096

const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants

export class RecordFile {
  private readonly fd: number
  private name = 'outcome.new'
  private bytes = 0

  /** Allocates space with zeros, which are cut off by the first write. */
  constructor(private readonly taskDir: string) {
    this.fd = openSync(join(taskDir, this.name), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
    writeAt(this.fd, Buffer.alloc(ROOM_BYTES), 0)
  }

  /** From then on the process of the task is known. */
  start(process: LaunchedProcess): void {
    this.write(process)
    this.rename('started')
  }

  /** From then on the ending is known, even after a power cut. The process is in the file already. */
  end({ ending, process: _, ...rest }: Outcome): void {
    this.write({ ...ending, ...rest, end: 1 })
    fdatasyncSync(this.fd)
    this.rename('outcome')
    closeSync(this.fd)
  }

  private write(pairs: object): void {
    const all = this.bytes === 0 ? { version: 1, ...pairs } : pairs
    const text = Object.entries(all).map(([key, value]) => `${key}=${value}\n`)
    const part = Buffer.from(text.join(''))
    writeAt(this.fd, part, this.bytes)
    this.bytes += part.length
    ftruncateSync(this.fd, this.bytes)
  }

  private rename(name: string): void {
    renameSync(join(this.taskDir, this.name), join(this.taskDir, name))
    this.name = name
  }
}

function writeAt(fd: number, bytes: Buffer, position: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, position + at)
}
