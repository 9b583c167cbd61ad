/** The bench still runs: a quick round on control and the floor gives a whole report. Its times are not looked at. */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Report } from '../../bench/report.ts'
import { tempDir } from '../support/temp.ts'

const MAIN = join(dirname(dirname(import.meta.dir)), 'bench', 'main.ts')

/** A quick run takes about eight seconds on an idle machine. */
const PATIENCE_MS = 60_000

/** Runs the bench with its output and its temporary files in `dir`. */
function runBench(dir: string, ...flags: string[]) {
  const env = { ...process.env, TMPDIR: dir }
  const out = join(dir, 'out')
  return Bun.spawn([process.execPath, MAIN, '--out', out, ...flags], { env, stdout: 'pipe', stderr: 'pipe' })
}

const leftovers = (dir: string) => readdirSync(dir).filter((name) => name.startsWith('taskmill-bench-'))

test(
  'a quick run measures each server in every way and leaves nothing behind',
  async () => {
    using temp = tempDir()
    const bench = runBench(temp.path, '--quick')
    const [stdout, stderr] = await Promise.all([new Response(bench.stdout).text(), new Response(bench.stderr).text()])
    expect({ code: await bench.exited, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('bench:') })

    const report = (await Bun.file(join(temp.path, 'out/latest.json')).json()) as Report
    expect(report).toMatchObject({ quick: true, rounds: 1, duration_ms: expect.any(Number) })
    expect(report.machine).toMatchObject({ bun: Bun.version, cores: expect.any(Number), kernel: expect.any(String) })
    expect(report.machine.fdatasync_ms).toBeGreaterThan(0)
    expect(report.servers.map(({ name }) => name)).toEqual(['control', 'floor', 'floor+journal'])
    expect(new Set(report.measures.map(({ workload }) => workload))).toEqual(
      new Set(['submit', 'health', 'small', 'large', 'stall', 'start']),
    )
    expect(new Set(report.measures.map(({ key }) => key)).size).toBe(report.measures.length)
    for (const { key, better, results } of report.measures) {
      // The floor keeps no state file, so nobody waits for it.
      const measured = key === 'stall_snapshot' ? ['control'] : ['control', 'floor', 'floor+journal']
      expect({ key, measured: Object.keys(results) }).toEqual({ key, measured })
      for (const [name, { samples, median, ratio_to_floor }] of Object.entries(results)) {
        expect({ key, name, samples, median }).toEqual({ key, name, samples: [median], median: expect.any(Number) })
        if (key !== 'large_kept') expect(median).toBeGreaterThan(0)
        if (better === undefined || key === 'stall_snapshot') expect(ratio_to_floor).toBeNull()
        else if (name === 'floor') expect(ratio_to_floor).toBe(1)
      }
    }

    expect(stdout).toContain('| measure | unit | control | floor | floor+journal |')
    expect(await Bun.file(join(temp.path, 'out/latest.md')).text()).toBe(stdout.replace(/\n$/, ''))
    expect(leftovers(temp.path)).toEqual([])
  },
  PATIENCE_MS,
)

test(
  'an interrupted run ends its servers and removes its files',
  async () => {
    using temp = tempDir()
    const bench = runBench(temp.path, '--quick', '--only', 'stall')
    const reader = bench.stderr.getReader()
    await reader.read() // the first round begins: servers are built, the generators run
    bench.kill('SIGINT')
    expect(await bench.exited).toBe(130)
    expect(leftovers(temp.path)).toEqual([])
    expect(processesOf(temp.path)).toEqual([])
    await reader.cancel()
  },
  PATIENCE_MS,
)

test('an unknown workload is a usage error', async () => {
  using temp = tempDir()
  const bench = runBench(temp.path, '--only', 'nothing')
  expect(await new Response(bench.stderr).text()).toStartWith('bench: unknown workload "nothing" (there are: submit, ')
  expect(await bench.exited).toBe(2)
  expect(existsSync(join(temp.path, 'out'))).toBe(false)
})

/** Commands of living processes that run something below `dir`. */
function processesOf(dir: string): string[] {
  const { stdout } = Bun.spawnSync(['ps', '-eo', 'stat=,args='])
  const lines = stdout.toString().split('\n')
  return lines.filter((line) => line.includes(`${dir}/`) && !line.startsWith('Z'))
}
