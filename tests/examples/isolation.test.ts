/** From what the runtime service says of a task to the words of the demo: how far it was fenced in, and why it failed. */
import { describe, expect, test } from 'bun:test'
import { failureWords, formatBytes } from '../../examples/demo/failure.ts'
import { type ExampleTask, expectedOn } from '../../examples/demo/graph.ts'
import { isolationWords } from '../../examples/demo/isolation.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ExecutionPlan, PlannedSandbox, ResourceEnforcement } from '../../shared/contract/runtime.ts'
import { wrap } from '../../shared/text/live-view/palette.ts'

const MIB = 1024 * 1024
const WIDE = 1_000

const requested_sandbox: PlannedSandbox = { profile: 'linux_sandbox', chroot: false }
const unfenced: PlannedSandbox = { profile: 'process', chroot: false }
const fenced: PlannedSandbox = {
  ...requested_sandbox,
  namespaces: { mount: true, pid: true, uts: true, ipc: true, net: false, cgroup: false, user: true },
}
const byCgroup: ResourceEnforcement = {
  ...{ wall_time_ms: 1_000, cpu_time_enforced: true, memory_bytes: 64 * MIB, memory_enforced: true },
  ...{ pids_enforced: true, cgroup_enforced: true, oom_detection: true },
}
const byAddressSpace = { ...byCgroup, pids_enforced: false, cgroup_enforced: false, oom_detection: false }

const plan = (
  effective_sandbox: PlannedSandbox,
  resource_enforcement: ResourceEnforcement,
  ...fallback_reasons: string[]
): ExecutionPlan => ({
  ...{ capability_mode: 'adaptive', requested_sandbox, effective_sandbox, resource_enforcement },
  ...{ degraded: fallback_reasons.length > 0, fallback_reasons, capability_warnings: [] },
})

const record = (execution_plan: ExecutionPlan, result: object = {}, more: Partial<TaskRecord> = {}): TaskRecord => ({
  ...{ id: 'draw', type: 'runtime', execution_category: 'runtime', retry: 0, graph_id: 'g', status: 'success' },
  ...{ created_at: '', updated_at: '', ...more },
  result: { execution_plan, stdout: '', stderr: '', logs: { stdout: 'http://x/1', stderr: 'http://x/2' }, ...result },
})

describe('how far steps were fenced in', () => {
  test('all of it', () => {
    expect(isolationWords([record(plan(fenced, byCgroup)), record(plan(fenced, byCgroup))], WIDE)).toEqual([
      ' 2 steps in the runtime asked for the profile linux_sandbox and got it, each with its own mount, pid, uts, ipc, user.',
      '   Limits that held: wall time, CPU time, memory (cgroup), processes (cgroup).',
    ])
  })

  test('nothing of it', () => {
    expect(isolationWords([record(plan(unfenced, byAddressSpace, 'no sandbox: without'))], WIDE)).toEqual([
      ' 1 step in the runtime asked for the profile linux_sandbox and got the profile process, limits and accounts without isolation (degraded):',
      '   no sandbox: without',
      '   Limits that held: wall time, CPU time, address space (RLIMIT_AS).',
    ])
  })

  test('a part of it, and no limits but time', () => {
    const limits = { ...byAddressSpace, cpu_time_enforced: false, memory_enforced: false }
    const sandbox = {
      ...fenced,
      namespaces: { ...fenced.namespaces!, pid: false, ipc: false, uts: false, user: false },
    }
    expect(isolationWords([record(plan(sandbox, limits, 'one', 'two'))], WIDE)).toEqual([
      ' 1 step in the runtime asked for the profile linux_sandbox and got it in part (degraded), each with its own mount:',
      '   one',
      '   two',
      '   Limits that held: wall time.',
    ])
  })

  test('different plans each have their own words; other tasks, and those that were refused, have none', () => {
    const other = { ...record(plan(fenced, byCgroup)), type: 'os' }
    const { result: _, ...refused } = record(plan(fenced, byCgroup))
    const records = [record(plan(fenced, byCgroup)), record(plan(fenced, byAddressSpace)), other, refused]
    expect(isolationWords(records, WIDE).filter((line) => line.startsWith(' 1 step'))).toHaveLength(2)
    expect(isolationWords([other, refused], WIDE)).toEqual([])
  })
})

const usage = { duration_ms: 66, user_cpu_ms: 30, system_cpu_ms: 14, max_rss_bytes: 50.5 * MIB }
const failed = (execution_plan: ExecutionPlan, code: 'exit_nonzero' | 'memory_limit_exceeded', more: object) =>
  record(
    execution_plan,
    { usage, ...more },
    {
      ...{ status: 'failed', error: 'it ended' },
      runtime: { status: 'failed', attempt: 1, error: { code, message: 'it ended' } },
    },
  )

describe('why a step failed', () => {
  test('the kernel ended it', () => {
    const more = { usage: { ...usage, memory_peak_bytes: 64 * MIB } }
    expect(failureWords(failed(plan(fenced, byCgroup), 'memory_limit_exceeded', more), WIDE)).toEqual([
      ' draw failed. What GET /tasks/draw says of it:',
      '   error   memory_limit_exceeded: it ended',
      '   limit   64 MiB of memory, by a memory cgroup',
      '   usage   66ms, 44ms of CPU, at most 50.5 MiB resident in a process, at most 64 MiB together',
      '   stderr  nothing: it had no time to say anything',
      '   logs    http://x/2',
      '   to do   raise limits.memory_bytes, or hold less in memory at a time',
    ])
  })

  test('it was refused address space', () => {
    const words = failureWords(
      failed(plan(unfenced, byAddressSpace), 'exit_nonzero', { stderr: 'out of\nmemory\n' }),
      WIDE,
    )
    expect(words).toContain('   limit   64 MiB of memory, as address space, RLIMIT_AS')
    expect(words).toContain('   stderr  out of memory')
    expect(words.at(-1)).toContain('it was refused more and ended by itself')
    expect(words.at(-1)).toContain('raise limits.memory_bytes')
  })

  test('it failed by itself', () => {
    const words = failureWords(failed(plan(fenced, byCgroup), 'exit_nonzero', { stderr: 'no such file' }), WIDE)
    expect(words.at(-1)).toBe('   to do   read what it said, and all of it in the logs')
  })

  test('in lines that are not too long, where words allow it', () => {
    const words = failureWords(failed(plan(unfenced, byAddressSpace), 'exit_nonzero', {}), 60)
    expect(Math.max(...words.map((line) => line.length))).toBeLessThanOrEqual(60)
    expect(words.filter((line) => /^ {11}\S/.test(line)).length).toBeGreaterThan(2)
  })
})

test.each([
  ['', 10, ['']],
  ['one two', 7, ['one two']],
  ['one two', 6, ['one', 'two']],
  ['a longer-than-that b', 5, ['a', 'longer-than-that', 'b']],
])('%p in %d columns', (text, columns, lines) => {
  expect(wrap(text, columns)).toEqual(lines)
})

test.each([
  [64 * MIB, '64 MiB'],
  [1.25 * MIB, '1.3 MiB'],
  [0, '0 MiB'],
])('%d bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test('what a graph expects depends on whether the host limits memory, where it says so', () => {
  const task = (id: string, more: object): ExampleTask => ({
    id,
    annotations: { title: id, expect: 'failed', ...more },
  })
  const graph = { tasks: [task('a', { expect_without_memory_limit: 'success' }), task('b', {})] }
  const endings = (limitsMemory: boolean) => expectedOn(graph, limitsMemory).tasks.map((t) => t.annotations.expect)
  expect(endings(true)).toEqual(['failed', 'failed'])
  expect(endings(false)).toEqual(['success', 'failed'])
})
