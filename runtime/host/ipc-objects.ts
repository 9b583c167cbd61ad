/** System V IPC objects of a user in the IPC namespace of the service. They outlive the processes that made them. */
import { loadLibc } from '../../shared/process/libc.ts'
import { readText } from './read-text.ts'

const IPC_RMID = 0

/** In the mode of a segment that is removed once no process has it attached. */
const SHM_DEST = 0o1000

/** After the key. Its name varies: shmid, msqid, semid. */
const ID_COLUMN = 1

const load = () =>
  loadLibc({
    shmctl: { args: ['i32', 'i32', 'ptr'], returns: 'i32' },
    msgctl: { args: ['i32', 'i32', 'ptr'], returns: 'i32' },
    semctl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  } as const)

/** Removes all of which `uid` is the owner or the maker. Throws if one stays. */
export function removeIpcObjects(uid: number): void {
  const kinds = ['shm', 'msg', 'sem'] as const
  const all = kinds.flatMap((kind) => objectsOf(kind, uid).map((id) => ({ kind, id })))
  if (all.length === 0) return
  const libc = load()
  for (const { kind, id } of all) {
    if (kind === 'shm') libc?.shmctl(id, IPC_RMID, null)
    else if (kind === 'msg') libc?.msgctl(id, IPC_RMID, null)
    else libc?.semctl(id, 0, IPC_RMID)
  }
  const left = kinds.flatMap((kind) => objectsOf(kind, uid))
  if (left.length > 0) throw new Error(`${left.length} IPC objects of the user ${uid} cannot be removed`)
}

function objectsOf(kind: string, uid: number): number[] {
  const [head = '', ...lines] = (readText(`/proc/sysvipc/${kind}`) ?? '').trimEnd().split('\n')
  const columns = head.trim().split(/\s+/)
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter((values) => ['uid', 'cuid'].some((name) => Number(values[columns.indexOf(name)]) === uid))
    .filter((values) => (Number.parseInt(values[columns.indexOf('perms')]!, 8) & SHM_DEST) === 0)
    .map((values) => Number(values[ID_COLUMN]))
}
