/**
 * A record of which service owns cgroups, kept beside them.
 *
 * A cgroup holds no files, and extended attributes need root on some kernels, so the record is in the names of empty
 * cgroups: JSON in base64url, cut into names of siblings, below the empty cgroup of the service. This needs no
 * directory shared by services of different users, and a reboot removes it with the cgroups.
 */
import { mkdirSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { identify, isStillThere, type ProcessIdentity, pidNamespace } from '../../shared/process/processes.ts'
import { namesBelow, treeOf } from './cgroup-files.ts'

export interface CgroupRecord {
  /** Absolute path of the data directory, as the service sees it. */
  readonly data_dir: string
  /** Undefined on systems that do not tell. */
  readonly process?: ProcessIdentity
  /** The namespaces in which pid and path are valid. */
  readonly pid_namespace: string
  readonly mount_namespace: string
}

/** Begins the name of a cgroup that is a part of a record: `@<digest>~<index>~<count>~<part>`. */
const MARK = '@'
const NAME = /^@([0-9a-f]{16})~(\d+)~(\d+)~([\w-]*)$/

/** Characters of a part. A name has at most 255 (NAME_MAX). */
const MAX_PART = 200

/** Parts of a record. A path has at most 4,095 bytes, which JSON and base64url can make eight times as long. */
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

/** Writes the record below the cgroup of a service and removes those of its earlier runs. Throws the system's error. */
export function writeRecord(group: string, record: CgroupRecord): void {
  const names = namesOf(record)
  for (const name of names) mkdirSync(join(group, name), { recursive: true })
  for (const name of recordNames(group)) if (!names.includes(name)) removeEmptyCgroups(join(group, name))
}

/** Siblings, not nested: a path through all parts could be too long for the system. */
function namesOf(record: CgroupRecord): string[] {
  const text = Buffer.from(JSON.stringify(record)).toString('base64url')
  const digest = digestOf(text)
  const parts = text.match(new RegExp(`.{1,${MAX_PART}}`, 'g')) ?? []
  return parts.map((part, i) => `${MARK}${digest}~${i}~${parts.length}~${part}`)
}

const digestOf = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16)

/**
 * The records below the cgroup of a service. A record that cannot be read, because it is just being written, is null.
 */
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

/** Whether the process that wrote the record is alive. Undefined where that cannot be told from this namespace. */
export function isWriterAlive({ process, pid_namespace }: CgroupRecord): boolean | undefined {
  if (process === undefined || pid_namespace !== pidNamespace()) return undefined
  return isStillThere(process)
}

/** Whether a path means the same here as for the writer. */
export const isSeenFromHere = ({ mount_namespace }: CgroupRecord): boolean => mount_namespace === mountNamespace()

/** Removes a cgroup and its descendants, as far as they have no processes. */
export function removeEmptyCgroups(top: string): boolean {
  for (const group of treeOf(top)) {
    try {
      rmdirSync(group)
    } catch {
      return false // it has processes, or belongs to another user
    }
  }
  return true
}
