/** Files in which the kernel and others say what the host is. All of them may be absent or forbidden. */
import { readFileSync } from 'node:fs'

/** The text of a file, or null where it cannot be read: then it says nothing. */
export function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
