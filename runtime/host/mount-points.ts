/** Mount points of this process. Source: proc_pid_mountinfo(5). */
import { readFileSync } from 'node:fs'
import { isWithin } from '../intake/is-within.ts'

/** File systems whose directories are file systems of their own, each of which may hang alone. */
const AUTOMOUNTER = 'autofs'

/**
 * What does not answer when the real path `path` does not: its mount point, or the path alone where that is the root or an
 * automounter's. Asks the kernel alone, not the file system. `mountInfo` is the text of /proc/self/mountinfo.
 */
export function placeOf(path: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): string {
  let place = { path: '/', type: '' }
  for (const line of mountInfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ')
    const point = unescaped(mount.split(' ')[4] ?? '')
    // Of two at one place the later one is seen.
    if (point !== '' && isWithin(path, point) && point.length >= place.path.length)
      place = { path: point, type: source.split(' ')[0] ?? '' }
  }
  return place.path === '/' || place.type === AUTOMOUNTER ? path : place.path
}

const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
