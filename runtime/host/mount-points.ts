/** Mount points of this process. Source: proc_pid_mountinfo(5). */
import { readFileSync } from 'node:fs'
import { isWithin } from '../../shared/files/is-within.ts'

/** File systems whose directories are separate mounts, each of which may hang alone. */
const AUTOMOUNTER = 'autofs'

/**
 * The part of the file system that hangs when the real path `path` does: its mount point, or the path alone where the
 * mount is the root or an automounter's. Asks only the kernel, never the file system. `mountInfo` is the text of
 * /proc/self/mountinfo.
 */
export function placeOf(path: string, mountInfo = readFileSync('/proc/self/mountinfo', 'utf8')): string {
  let place = { path: '/', type: '' }
  for (const line of mountInfo.split('\n')) {
    const [mount = '', source = ''] = line.split(' - ')
    const point = unescaped(mount.split(' ')[4] ?? '')
    // Of two mounts at the same path, the later one is visible.
    if (point !== '' && isWithin(path, point) && point.length >= place.path.length)
      place = { path: point, type: source.split(' ')[0] ?? '' }
  }
  return place.path === '/' || place.type === AUTOMOUNTER ? path : place.path
}

const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
