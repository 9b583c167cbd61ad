/** Creates FIFOs, opens them without waiting for the other end, and reads what they contain. */
import { constants, openSync, readSync } from 'node:fs'
import { systemCodeOf } from '../../shared/contract/errors.ts'

const { O_NONBLOCK, O_RDWR, O_WRONLY } = constants

export function makeFifo(path: string): void {
  const { exitCode, stderr } = Bun.spawnSync(['mkfifo', path])
  if (exitCode !== 0) throw new Error(String(stderr))
}

/** Both ends in one descriptor, so that neither is ever missing. */
export const openBothEnds = (path: string): number => openSync(path, O_RDWR | O_NONBLOCK)

/** Throws ENXIO when nobody reads it. */
export const openWriteEnd = (path: string): number => openSync(path, O_WRONLY | O_NONBLOCK)

/** What is in it now. */
export function drain(fd: number): string {
  const chunk = Buffer.alloc(65_536)
  try {
    return chunk.toString('utf8', 0, readSync(fd, chunk))
  } catch (error) {
    if (systemCodeOf(error) === 'EAGAIN') return ''
    throw error
  }
}
