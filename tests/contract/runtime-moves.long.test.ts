/**
 * Goal: large files move in little memory, and many tasks that need them share one move. Method: 200 MB and thousands of
 * files between two real services, the memory of all processes, and a link that counts.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { startControl } from '../support/control.ts'
import { startPool } from '../support/runtime-pool.ts'
import { slowLink } from '../support/slow-link.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(300_000)

const MIB = 1024 ** 2
const MAX_GROWTH_MIB = 100
const PATIENCE_MS = 120_000

/** The most memory that a process has had, in MiB. */
const peakMib = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

test('200 MB for four tasks at once: one move, in a few megabytes of memory', async () => {
  await using pool = await startPool({ a: {}, b: { flags: ['--max-running-tasks', '8'] } })
  await using link = slowLink(() => pool.urlOf('b'))
  await using control = await startControl({
    flags: ['--max-concurrency', '8', '--runtime-url', `a=${pool.urlOf('a')}`, '--runtime-url', `b=${link.url}`],
  })
  const make = (id: string, script: string) => ({
    ...{ id, type: 'runtime.script' },
    params: { script, placement: { runtime: 'a' } },
  })
  const use = (id: string, source: string, script: string) => ({
    ...{ id, type: 'runtime.script', depends_on: [source] },
    params: { script, inputs: { in: { $from: source, file: 'f' } }, placement: { runtime: 'b' } },
  })
  await control.submit([make('warm-up', 'echo > f'), use('after', 'warm-up', 'true')])
  await control.allEnded()
  const services = { control, a: pool.runtime('a'), b: pool.runtime('b') }
  const peaks = () => Object.entries(services).map(([name, { process }]) => [name, peakMib(process.pid)] as const)
  const before = Object.fromEntries(peaks())
  const ids = Array.from({ length: 4 }, (_, i) => `t${i}`)
  await control.submit([
    make('large', `head -c ${200 * MIB} /dev/urandom > f; sha256sum < f`),
    ...ids.map((id) => use(id, 'large', 'sha256sum < in')),
  ])
  const ended = (id: string) =>
    until(
      () => control.get(id),
      ({ status }) => isTerminal(status),
      { patienceMs: PATIENCE_MS },
    )
  const sum = (await ended('large')).result as { stdout: string }
  for (const id of ids) {
    expect(await ended(id)).toMatchObject({ status: 'success', result: { stdout: sum.stdout } })
  }
  const puts = link.exchanges.filter(({ request, bytes }) => request.startsWith('PUT ') && bytes > MIB)
  expect(puts).toHaveLength(1)
  for (const [name, peak] of peaks()) {
    const grown = Math.round(peak - before[name]!)
    expect([name, grown, grown < MAX_GROWTH_MIB]).toEqual([name, grown, true])
  }
})

test('thousands of files arrive as they were', async () => {
  await using pool = await startPool({ a: {}, b: {} })
  const made = 'mkdir -p f/d; cd f; for i in $(seq 3000); do echo $i > d/$i; done; cat d/* | sha256sum'
  await pool.control.submit([
    { id: 'made', type: 'runtime.script', params: { script: made, placement: { runtime: 'a' } } },
    {
      ...{ id: 'used', type: 'runtime.script', depends_on: ['made'] },
      params: {
        script: 'find in -type f | wc -l; cat in/d/* | sha256sum',
        ...{ inputs: { in: { $from: 'made', file: 'f' } }, placement: { runtime: 'b' } },
      },
    },
  ])
  const [first, second] = [await pool.control.ended('made'), await pool.control.ended('used')]
  const lines = (task: typeof first) => (task.result as { stdout: string }).stdout.trim().split('\n')
  expect(lines(second)).toEqual(['3000', lines(first)[0]!])
})
