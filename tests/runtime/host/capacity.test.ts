/**
 * Goal: the capacity is the smallest limit that holds for the service, and where it came from is told.
 * Method: the files of several kinds of hosts; then this host, and a process of it in a cgroup of its own.
 */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { findCapacity } from '../../../runtime/host/capacity.ts'
import { ownCgroup } from '../../../runtime/host/own-cgroup.ts'
import { fakeRoot } from '../../support/fake-root.ts'

const UNSAID = { maxRunningTasks: 4, capacityMemoryBytes: undefined, capacityPids: undefined }

const MACHINE = {
  'proc/meminfo': 'MemTotal:        1000 kB\nMemFree:          10 kB\n',
  'proc/sys/kernel/pid_max': '32768\n',
  'proc/sys/kernel/threads-max': '40000\n',
}
const V1 = {
  ...MACHINE,
  'proc/self/cgroup': '8:pids:/a\n4:memory:/a/b\n0::/\n',
  'proc/self/mountinfo': `35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory
39 31 0:36 / /cg/pids rw - cgroup cgroup rw,pids
`,
}
const V2 = {
  ...MACHINE,
  'proc/self/cgroup': '0::/a/b\n',
  'proc/self/mountinfo': '30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n',
}
const V1_UNLIMITED = '9223372036854771712\n'

type Answer = { memory?: [amount: number, source: string]; pids?: [amount: number, source: string] }

describe('found out', () => {
  const machineMemory: Answer['memory'] = [1_024_000, 'proc/meminfo']
  const kernelPids: Answer['pids'] = [32_768, 'proc/sys/kernel/pid_max']

  test.each<[string, Record<string, string>, Answer]>([
    ['without cgroups: the machine', MACHINE, { memory: machineMemory, pids: kernelPids }],
    [
      'fewer threads than pids',
      { ...MACHINE, 'proc/sys/kernel/threads-max': '100\n' },
      { memory: machineMemory, pids: [100, 'proc/sys/kernel/threads-max'] },
    ],
    [
      'version 1: our own limits',
      { ...V1, 'cg/memory/a/b/memory.limit_in_bytes': '5000\n', 'cg/pids/a/pids.max': '50\n' },
      { memory: [5_000, 'cg/memory/a/b/memory.limit_in_bytes'], pids: [50, 'cg/pids/a/pids.max'] },
    ],
    [
      'version 1: a limit above ours',
      { ...V1, 'cg/memory/a/b/memory.limit_in_bytes': V1_UNLIMITED, 'cg/memory/a/memory.limit_in_bytes': '7000\n' },
      { memory: [7_000, 'cg/memory/a/memory.limit_in_bytes'], pids: kernelPids },
    ],
    [
      'version 1: no limits',
      { ...V1, 'cg/memory/a/b/memory.limit_in_bytes': V1_UNLIMITED, 'cg/pids/pids.max': 'max\n' },
      { memory: machineMemory, pids: kernelPids },
    ],
    [
      'version 2: our own limits',
      { ...V2, 'cg/a/b/memory.max': '5000\n', 'cg/a/memory.max': '6000\n', 'cg/a/b/pids.max': '50\n' },
      { memory: [5_000, 'cg/a/b/memory.max'], pids: [50, 'cg/a/b/pids.max'] },
    ],
    [
      'version 2: limits above ours',
      { ...V2, 'cg/a/b/memory.max': 'max\n', 'cg/a/memory.max': '6000\n', 'cg/a/pids.max': '60\n' },
      { memory: [6_000, 'cg/a/memory.max'], pids: [60, 'cg/a/pids.max'] },
    ],
    ['version 2 without controllers', V2, { memory: machineMemory, pids: kernelPids }],
    [
      'limits above what the machine has',
      { ...V2, 'cg/a/b/memory.max': '2000000\n', 'cg/a/b/pids.max': '1000000\n' },
      { memory: machineMemory, pids: kernelPids },
    ],
    [
      'a limit of nothing',
      { ...V2, 'cg/a/b/pids.max': '0\n' },
      { memory: machineMemory, pids: [0, 'cg/a/b/pids.max'] },
    ],
    [
      'files that say something else',
      { ...V2, 'cg/a/b/pids.max': '-1\n', 'cg/a/b/memory.max': '' },
      {
        memory: machineMemory,
        pids: kernelPids,
      },
    ],
    ['nothing to read', {}, { memory: [77, ''] }],
  ])('%s', (_, files, { memory, pids }) => {
    using root = fakeRoot(files)
    const source = (path: string) => (path === '' ? 'the operating system' : join(root.path, path))
    expect(findCapacity(UNSAID, { root: root.path, totalMemoryBytes: () => 77 })).toEqual({
      capacity: {
        task_slots: 4,
        ...(memory && { memory_bytes: memory[0] }),
        ...(pids && { pids: pids[0] }),
      },
      sources: {
        task_slots: '--max-running-tasks',
        ...(memory && { memory_bytes: source(memory[1]) }),
        ...(pids && { pids: source(pids[1]) }),
      },
    })
  })
})

test('what a flag says wins, also over less', () => {
  using root = fakeRoot(MACHINE)
  const settings = { maxRunningTasks: 9, capacityMemoryBytes: 2_000_000, capacityPids: 1 }
  expect(findCapacity(settings, { root: root.path })).toEqual({
    capacity: { task_slots: 9, memory_bytes: 2_000_000, pids: 1 },
    sources: { task_slots: '--max-running-tasks', memory_bytes: '--capacity-memory-bytes', pids: '--capacity-pids' },
  })
})

test('this host has memory, and not more than it has', () => {
  const { capacity, sources } = findCapacity(UNSAID)
  expect(capacity.memory_bytes).toBeGreaterThan(0)
  expect(capacity.memory_bytes).toBeLessThanOrEqual(totalmem())
  expect(sources.memory_bytes).not.toBe('')
})

/** Makes a cgroup below ours with a limit of its own; null where we may not. */
function limitedCgroup(pidsMax: number): (Disposable & { readonly path: string }) | null {
  const parent = ownCgroup('pids')?.directories[0]
  if (parent === undefined) return null
  const path = join(parent, `taskmill-test-${crypto.randomUUID()}`)
  try {
    mkdirSync(path)
  } catch {
    return null
  }
  const made = { path, [Symbol.dispose]: () => rmdirSync(path) }
  try {
    writeFileSync(join(path, 'pids.max'), String(pidsMax))
    return made
  } catch {
    made[Symbol.dispose]()
    return null
  }
}

function canLimit(): boolean {
  using cgroup = limitedCgroup(1)
  return cgroup !== null
}

test.skipIf(!canLimit())(
  'a process finds the limit of its own cgroup (skipped: no cgroup can be made here)',
  async () => {
    const limit = findCapacity(UNSAID).capacity.pids! - 1 // below what holds anyway
    using cgroup = limitedCgroup(limit)
    const module = JSON.stringify(join(import.meta.dir, '../../../runtime/host/capacity.ts'))
    const script = `import { findCapacity } from ${module}; console.log(JSON.stringify(findCapacity({ maxRunningTasks: 1 })))`
    const joinAndRun = 'echo 0 > "$1/cgroup.procs" && exec "$2" -e "$3"'
    const child = Bun.spawn(['sh', '-c', joinAndRun, 'sh', cgroup!.path, process.execPath, script], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({
      capacity: { task_slots: 1, pids: limit },
      sources: { pids: join(cgroup!.path, 'pids.max') },
    })
    expect(await child.exited).toBe(0)
  },
)
