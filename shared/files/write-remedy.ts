/** What a person can do about a file that the service cannot write. */
import { systemCodeOf } from '../contract/errors.ts'

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space, or inodes, on its disk',
  EDQUOT: 'free some space, or raise the quota of the user of the service',
  EROFS: 'mount its file system for writing',
  EIO: 'look for faults of its disk in the log of the kernel',
}

/** Completes an error of the system, in parentheses. */
export const writeRemedy = (error: unknown): string =>
  REMEDIES[systemCodeOf(error) ?? ''] ?? 'let the user of the service write there'
