/** Describes the machine, for the head of every table. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, realpathSync, statfsSync, statSync, writeSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { basename, join } from 'node:path'
import { median } from './statistics.ts'

export interface Machine {
  readonly cores: number
  readonly cpu: string
  readonly memory_bytes: number
  readonly kernel: string
  readonly bun: string
  /** Of the temporary directory, where the servers keep their data. */
  readonly file_system: string
  /** What that lies on, as far as Linux tells. */
  readonly disk: string
  /** Of the sources, with `+` after it where they were changed since. */
  readonly commit: string
  /** Median of writing 1 KiB at the end of a file and waiting until it is on the disk. */
  readonly fdatasync_ms: number
  /** Median of making an empty file in a new directory. For some minutes after many were deleted ext4 takes longer. */
  readonly new_file_us: number
  /** Processes that wanted to run in the minute before the bench: well above 0 means company, and noise. */
  readonly load_before: number
}

/** Source: statfs(2). */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  61267: 'ext4',
  16914836: 'tmpfs',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  2035054128: 'overlayfs',
}

const SYNCS = 200
const FILES = 1_000

/** `dir` is the directory whose disk counts. */
export function describeMachine(dir: string): Machine {
  const processors = cpus()
  const { type } = statfsSync(dir)
  return {
    cores: processors.length,
    cpu: processors[0]?.model ?? 'unknown',
    memory_bytes: totalmem(),
    kernel: release(),
    bun: Bun.version,
    file_system: FILE_SYSTEMS[type] ?? `0x${type.toString(16)}`,
    disk: diskOf(dir),
    commit: commitOf(import.meta.dir),
    fdatasync_ms: fdatasyncMs(dir),
    new_file_us: newFileUs(mkdtempSync(join(dir, 'new-files-'))),
    load_before: loadavg()[0]!,
  }
}

/** Kind of a block device by the start of its name. Source: Documentation/admin-guide/devices.txt of Linux. */
const DISKS = [
  ['nvme', 'NVMe disk'],
  ['vd', 'virtual disk'],
  ['xvd', 'virtual disk'],
  ['sd', 'SCSI or SATA disk'],
  ['mmcblk', 'memory card'],
  ['dm-', 'mapped disk'],
  ['md', 'disk array'],
] as const

function diskOf(dir: string): string {
  const { dev } = statSync(dir)
  try {
    const device = basename(
      realpathSync(`/sys/dev/block/${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`),
    )
    return DISKS.find(([start]) => device.startsWith(start))?.[1] ?? 'unknown disk'
  } catch {
    return 'no disk' // memory, or layers of a container
  }
}

function commitOf(dir: string): string {
  const git = (...args: string[]) => Bun.spawnSync(['git', ...args], { cwd: dir, stderr: 'ignore' }).stdout.toString()
  if (Bun.which('git') === null) return 'unknown'
  const commit = git('rev-parse', '--short=10', 'HEAD').trim()
  return commit === ''
    ? 'unknown'
    : `${commit}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+'}`
}

function fdatasyncMs(dir: string): number {
  const file = openSync(join(dir, 'fdatasync'), 'w')
  const block = Buffer.alloc(1024, 'x')
  const times: number[] = []
  for (let i = 0; i < SYNCS; i++) {
    const start = performance.now()
    writeSync(file, block)
    fdatasyncSync(file)
    times.push(performance.now() - start)
  }
  closeSync(file)
  return median(times)
}

function newFileUs(dir: string): number {
  const times: number[] = []
  for (let i = 0; i < FILES; i++) {
    const start = performance.now()
    closeSync(openSync(join(dir, String(i)), 'w'))
    times.push((performance.now() - start) * 1000)
  }
  return median(times)
}
