/** The name of the user that the service runs as. */
import { join } from 'node:path'
import { readText } from './read-text.ts'

/** A user without an entry in the user database, as in many containers, has only a number. */
export function serviceUser(uid: number | undefined, root = '/'): string {
  const users = (readText(join(root, 'etc/passwd')) ?? '').split('\n').map((line) => line.split(':'))
  const own = users.find(([, , id]) => id === String(uid))
  return own?.[0] || String(uid ?? 'taskmill')
}
