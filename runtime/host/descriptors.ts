/** How many files and sockets this process may have open. */
import { readText } from './read-text.ts'

/** Where /proc does not tell: what every system allows. */
const UNKNOWN_LIMIT = 1_024

/** The limit of this process. Bun raises the soft limit to the hard one. */
export function maxDescriptors(): number {
  const [, limit] = /^Max open files +(\d+|unlimited)/m.exec(readText('/proc/self/limits') ?? '') ?? []
  if (limit === undefined) return UNKNOWN_LIMIT
  return limit === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(limit)
}
