/**
 * Whose control groups these are, written down beside them.
 *
 * A control group holds no files, and only root may give it attributes everywhere, so the record is in the names of empty
 * groups: JSON in base64url, cut into the names of groups side by side, below the empty group of the service. It
 * needs no directory that services of different users would have to share, and goes with the groups at a reboot.
 */
import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { identify, isStillThere, type ProcessIdentity, pidNamespace } from '../../shared/processes.ts'
import { namesBelow, treeOf } from './cgroup-files.ts'

export interface CgroupRecord {
  /** Absolute path of the data directory, as its service sees it. */
  readonly data_dir: string
  /** Undefined on systems that cannot tell. */
  readonly process?: ProcessIdentity
  /** Where pid and path mean what they say. */
  readonly pid_namespace: string
  readonly mount_namespace: string
}

/** Begins the name of a group that is a part of a record: `@<digest>~<index>~<count>~<part>`. */
const MARK = '@'
const NAME = /^@([0-9a-f]{16})~(\d+)~(\d+)~([\w-]*)$/

/** Characters of a part: a name has at most 255 (NAME_MAX). */
const MAX_PART = 200

/** Parts of a record: a path has at most 4,095 bytes, which JSON and base64url can make eight times as long. */
const MAX_PARTS = 200

/** The record of this process as the service of `dataDir`. */
export function ownRecord(dataDir: string): CgroupRecord {
  const process_ = identify(process.pid)
  return { data_dir: dataDir, ...(process_ && { process: process_ }), ...namespaces() }
}

const namespaces = () => ({ pid_namespace: pidNamespace(), mount_namespace: mountNamespace() })

function mountNamespace(): string {
  const found = statSync('/proc/self/ns/mnt', { throwIfNoEntry: false })
  return (found?.ino ?? 0).toString(36)
}

/** Writes the record below the group of a service, in place of those of its earlier runs. Throws what the system says. */
export function writeRecord(group: string, record: CgroupRecord): void {
  const names = namesOf(record)
  for (const name of names) mkdirSync(join(group, name), { recursive: true })
  for (const name of recordNames(group)) if (!names.includes(name)) removeEmptyCgroups(join(group, name))
}

/** Side by side, not in each other: a path through all of them could be longer than the system takes. */
function namesOf(record: CgroupRecord): string[] {
  const text = Buffer.from(JSON.stringify(record)).toString('base64url')
  const digest = digestOf(text)
  const parts = text.match(new RegExp(`.{1,${MAX_PART}}`, 'g')) ?? []
  return parts.map((part, i) => `${MARK}${digest}~${i}~${parts.length}~${part}`)
}

const digestOf = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)

/** The records below the group of a service; one that cannot be read, as it is just being written, is null. */
export function readRecords(group: string): (CgroupRecord | null)[] {
  const texts = new Map<string, string[]>()
  for (const name of recordNames(group)) {
    const [, digest = '', index, count, part = ''] = NAME.exec(name) ?? []
    const parts = texts.get(digest) ?? Array.from({ length: Math.min(Number(count ?? 0), MAX_PARTS) }, () => '')
    texts.set(digest, parts)
    if (index !== undefined) parts[Number(index)] = part
  }
  return [...texts].map(([digest, parts]) => recordIn(digest, parts.join('')))
}

function recordIn(digest: string, text: string): CgroupRecord | null {
  if (digestOf(text) !== digest) return null
  try {
    const record = JSON.parse(Buffer.from(text, 'base64url').toString()) as CgroupRecord
    return typeof record.data_dir === 'string' ? record : null
  } catch {
    return null
  }
}

const recordNames = (group: string): string[] => namesBelow(group).filter((name) => name.startsWith(MARK))

/** Whether the process that wrote the record lives; undefined where that cannot be said from here. */
export function isWriterAlive({ process, pid_namespace }: CgroupRecord): boolean | undefined {
  if (process === undefined || pid_namespace !== pidNamespace()) return undefined
  return isStillThere(process)
}

/** Whether a path means here what it meant to the writer. */
export const isSeenFromHere = ({ mount_namespace }: CgroupRecord): boolean => mount_namespace === mountNamespace()

/** Removes a group with those below it, as far as they are empty of processes. */
export function removeEmptyCgroups(top: string): boolean {
  for (const group of treeOf(top)) {
    try {
      rmdirSync(group)
    } catch {
      return false // it has processes, or is not ours to remove
    }
  }
  return true
}
