/**
 * launchers.log: messages of launchers and their fork server for people. Each line reports a failed launch, and a
 * client can cause any number of them, so only the latest are kept.
 */
import { fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'

/** Bytes at which the file is cut, and bytes that remain: some thousand lines. */
export const MAX_COMPLAINTS_BYTES = 1024 * 1024
const KEPT_BYTES = MAX_COMPLAINTS_BYTES / 4

export class Complaints {
  /** For launchers to inherit. Opened for append. */
  readonly fd: number

  constructor(path: string) {
    this.fd = openSync(path, 'a+', 0o600)
    this.keepShort()
  }

  /** To be called now and then. A line written at the same moment may be lost. */
  keepShort(): void {
    try {
      const { size } = fstatSync(this.fd)
      if (size <= MAX_COMPLAINTS_BYTES) return
      const latest = Buffer.alloc(KEPT_BYTES)
      const length = readSync(this.fd, latest, 0, KEPT_BYTES, size - KEPT_BYTES)
      ftruncateSync(this.fd)
      const wholeLines = latest.subarray(latest.indexOf('\n') + 1, length)
      writeSync(this.fd, wholeLines)
    } catch {
      // a disk that is full or broken: the service says so itself
    }
  }
}
