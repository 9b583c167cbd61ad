/**
 * Commands that start a program on a different host: with other mounts, or with the system calls of an older kernel.
 *
 * Each command runs the rest of its command line.
 */
import { join } from 'node:path'

/**
 * Linux 4.9 is the oldest that we support (docs/sandbox.md): these are the numbers of the system calls that it does not
 * have. From 424 on both architectures have the same numbers; the last ones no kernel has yet.
 */
const OWN_OF_ARCHITECTURE = process.arch === 'x64' ? [332, 333, 334] : [291, 292, 293, 294]
const CALLS_AFTER_4_9 = [...OWN_OF_ARCHITECTURE, ...Array.from({ length: 100 }, (_, i) => 424 + i)]

const MOUNT_SETATTR = 442

export const CALLS = {
  'no call': [] as number[],
  mount_setattr: [MOUNT_SETATTR],
  'every call newer than Linux 4.9': CALLS_AFTER_4_9,
}

/** A host whose kernel answers ENOSYS to these calls, as an older one does, or a filter of a container engine. */
export const withoutCalls = (numbers: readonly number[]): string[] => (numbers.length === 0 ? [] : answering(numbers))

/**
 * A host whose kernel has calls that no kernel has yet, and fails them with EXDEV. Of two filters that refuse a call the
 * one that was set last gives the error, so a sandbox that forbids them shows.
 */
export const withNewerCalls = (numbers: readonly number[]): string[] => answering(numbers, '=EXDEV')

/** A host that fails each call with EXDEV whose sixth argument is `mark`: nothing comes of it, and a sandbox that forbids it shows. */
export const withMarkedCalls = (mark: number): string[] => answering([`sixth:${mark}`], '=EXDEV')

const answering = (calls: readonly (number | string)[], answer = ''): string[] => [
  process.execPath,
  join(import.meta.dir, '../fixtures/without-calls.ts'),
  calls.join(',') + answer,
]

/** A mount namespace in which every mount is shared, as systemd makes those of its host. For root. */
export const SHARED_MOUNTS: readonly string[] = [
  ...['unshare', '--mount', '--propagation', 'private'],
  ...['sh', '-c', 'mount --make-rshared / && exec "$@"', 'sh'],
]

/**
 * The same; when the rest of the command line has ended, `DIR/before` and `DIR/after` hold the mounts of that namespace.
 * All files are opened before, so that mounts on /proc, /tmp or /dev cannot hide them.
 */
export const recordedSharedMounts = (dir: string): string[] => [...SHARED_MOUNTS, ...['sh', '-c', RECORD, dir]]

const RECORD = `exec 6< /proc/self/mountinfo 7< /proc/self/mountinfo 8> "$0/before" 9> "$0/after"
cat <&6 >&8; "$@" 6<&- 7<&- 8>&- 9>&-; code=$?; cat <&7 >&9; exit $code`
