/** Files that describe the host. Any of them may be missing or forbidden. */
import { readFileSync } from 'node:fs'

/** The text of a file, or null where it cannot be read. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
