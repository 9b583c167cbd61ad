/** The bench still runs: a quick round of each suite gives a whole report. Its times are not looked at. */
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Report } from '../../bench/report.ts'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import { withoutChromium } from '../support/chromium.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const MAIN = join(dirname(dirname(import.meta.dir)), 'bench', 'main.ts')

/** A quick run takes about eight seconds on an idle machine. */
const PATIENCE_MS = 300_000

/** Runs the bench with its output and its temporary files in `dir`. */
function runBench(dir: string, ...flags: string[]) {
  const env = { ...process.env, TMPDIR: dir }
  const out = join(dir, 'out')
  return Bun.spawn([process.execPath, MAIN, '--out', out, ...flags], { env, stdout: 'pipe', stderr: 'pipe' })
}

const leftovers = (dir: string) => readdirSync(dir).filter((name) => name.startsWith('taskmill-bench-'))

/** Runs a suite, quick, and gives its report once all that every report must have was looked at. */
async function quickReport(suite: string): Promise<Report> {
  using temp = tempDir()
  chmodSync(temp.path, 0o711) // PostgreSQL runs as another user
  const bench = runBench(temp.path, suite, '--quick')
  const [stdout, stderr] = await Promise.all([new Response(bench.stdout).text(), new Response(bench.stderr).text()])
  expect({ code: await bench.exited, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('bench:') })
  expect(await Bun.file(join(temp.path, `out/${suite}.md`)).text()).toBe(stdout.replace(/\n$/, ''))
  expect(leftovers(temp.path)).toEqual([])

  const report = (await Bun.file(join(temp.path, `out/${suite}.json`)).json()) as Report
  expect(report).toMatchObject({ suite, quick: true, rounds: 1, duration_ms: expect.any(Number) })
  expect(report.machine).toMatchObject({ bun: Bun.version, cores: expect.any(Number), kernel: expect.any(String) })
  expect(report.machine.fdatasync_ms).toBeGreaterThan(0)
  expect(report.machine.new_file_us).toBeGreaterThan(0)
  expect(new Set(report.measures.map(({ key }) => key)).size).toBe(report.measures.length)
  const names = report.servers.map(({ name }) => name)
  expect(stdout).toContain(`| measure | unit | ${names.join(' | ')} |`)
  for (const { key, better, results } of report.measures) {
    for (const [name, { samples, median, ratio_to_floor }] of Object.entries(results)) {
      expect({ key, name, samples, median }).toEqual({ key, name, samples: [median], median: expect.any(Number) })
      if (better === undefined || !('floor' in results)) expect(ratio_to_floor).toBeNull()
      else if (name === 'floor') expect(ratio_to_floor).toBe(1)
    }
  }
  return report
}

/** The servers that each measure has a figure of, by the start of its key. */
const measuredServers = ({ measures }: Report): Map<string, string[]> =>
  new Map(measures.map(({ key, results }) => [key, Object.keys(results)]))

test(
  'a quick run measures how long control and its floor keep a reader waiting, and leaves nothing behind',
  async () => {
    const report = await quickReport('control')
    // The floor keeps no state file, so nobody waits for it.
    expect(Object.fromEntries(measuredServers(report))).toEqual({
      ...{ stall_idle: ['control', 'floor'], stall_run: ['control', 'floor'], stall_snapshot: ['control'] },
    })
    for (const { results } of report.measures) expect(results.control!.median).toBeGreaterThan(0)
  },
  PATIENCE_MS,
)

test(
  'a quick run measures control with a database and without one, and leaves nothing behind',
  async () => {
    const report = await quickReport('database')
    const servers = [...(postgresPrograms() === undefined ? [] : ['control+database']), 'floor']
    expect(report.servers.map(({ name }) => name)).toEqual(servers)
    expect(new Set(report.measures.map(({ workload }) => workload))).toEqual(new Set(['submit', 'takeover']))
    for (const [key, measured] of measuredServers(report)) {
      const wanted = key.endsWith('_stall') ? servers.slice(0, -1) : servers // without a database there is no other replica
      expect({ key, measured }).toEqual({ key, measured: wanted })
    }
    for (const { key, results } of report.measures)
      if (!/^takeover(_large)?$/.test(key))
        for (const { median } of Object.values(results)) expect(median).toBeGreaterThan(0)
  },
  PATIENCE_MS,
)

test(
  'a quick run measures event streams, lists and the dashboard, and leaves nothing behind',
  async () => {
    const report = await quickReport('watching')
    const both = ['control', 'floor']
    const drawn = withoutChromium === undefined ? both : []
    const expected: Record<string, string[]> = {
      ...{ latency_p50: both, latency_p99: both, latency_cpu: both },
      ...{ clients_idle: both, clients_after: both },
      ...{ beside_none_p99: both, beside_many_p99: both, beside_ratio: both },
      ...{ lists_tasks_p99: both, lists_graphs_p99: both },
      ...{ drawing_opened: drawn, drawing_data: drawn },
      // The floor has no list of graphs to draw.
      ...{ list_painted: drawn.slice(0, 1), list_drawn: drawn.slice(0, 1) },
    }
    expect(Object.fromEntries(measuredServers(report))).toEqual(expected)
    for (const { key, results } of report.measures) {
      if (!key.startsWith('clients_') && results.control !== undefined)
        expect(results.control.median).toBeGreaterThan(0)
    }
    if (withoutChromium !== undefined)
      expect(report.measures.find(({ key }) => key === 'drawing_opened')!.label).toContain(
        'not measured: /usr/bin/chromium',
      )
    const judged = report.measures.filter(({ goal_met }) => goal_met !== null).map(({ key }) => key)
    expect(judged).toEqual([
      ...['latency_p99', 'clients_idle', 'clients_after', 'beside_ratio', 'lists_tasks_p99', 'lists_graphs_p99'],
      ...(withoutChromium === undefined ? ['drawing_opened', 'list_painted'] : []),
    ])
  },
  PATIENCE_MS,
)

test(
  'a quick run measures the runtime service and its floor, and leaves nothing behind',
  async () => {
    const report = await quickReport('runtime')
    const servers = ['runtime', 'floor']
    expect(report.servers.map(({ name }) => name)).toEqual(servers)
    const expected: Record<string, string[]> = {
      running_memory: servers,
      running_launcher: servers,
      running_growth: servers,
      // The floor has no tenants, so nobody can be made to wait while others run.
      queue_empty_p50: ['runtime'],
      queue_full_p50: ['runtime'],
      queue_p50_ratio: ['runtime'],
      queue_empty_rate: ['runtime'],
      queue_full_rate: ['runtime'],
      queue_rate_ratio: ['runtime'],
      queue_restart: ['runtime'],
      // The floor removes nothing.
      steady_rate: ['runtime'],
      steady_share: ['runtime'],
      steady_system: ['runtime'],
      steady_system_share: ['runtime'],
    }
    expect(Object.fromEntries(measuredServers(report))).toEqual(expected)
    for (const { key, results } of report.measures) {
      if (!key.startsWith('running_')) expect(results.runtime!.median).toBeGreaterThan(0)
    }
    // A launcher for each of them is there, and small; the floor has none.
    const launcher = report.measures.find(({ key }) => key === 'running_launcher')!.results
    expect(launcher.runtime!.median).toBeGreaterThan(0)
    expect(launcher.floor!.median).toBe(0)
    const judged = report.measures.filter(({ goal_met }) => goal_met !== null).map(({ key }) => key)
    expect(judged).toEqual(['running_memory', 'queue_p50_ratio', 'queue_rate_ratio', 'steady_share'])
  },
  PATIENCE_MS,
)

test(
  'a quick run counts the tokens of a dialogue, and leaves nothing behind',
  async () => {
    const report = await quickReport('agent')
    const figures = Object.fromEntries(report.measures.map(({ key, results }) => [key, results.control!.median]))
    expect(figures.brief!).toBeLessThan(figures.full! / 2)
    expect(figures.list_bytes!).toBeLessThan(20_000)
    const judged = report.measures.map(({ key, goal_met }) => [key, goal_met]).filter(([, met]) => met !== null)
    expect(judged).toEqual([
      ['list_bytes', true],
      ['brief_bytes', true],
    ])
  },
  PATIENCE_MS,
)

const canFence = missingSandbox === undefined && Bun.which('cc') !== null && Bun.which('bwrap') !== null

test.skipIf(missingSandbox !== undefined)(
  'a quick run measures networks of sandboxes (needs sandboxes), and leaves nothing behind',
  async () => {
    const report = await quickReport('sandbox')
    expect(report.servers.map(({ name }) => name)).toEqual(['taskmill'])
    const ours = ['taskmill']
    const hasCurl = Bun.which('curl') !== null
    const expected = {
      ...{ network: ours, network_host: ours, network_to_host: ours },
      ...{ network_rate: ours, network_rate_host: ours, network_rate_to_host: ours },
      ...(hasCurl && { network_stream: ours, network_stream_host: ours }),
      ...(hasCurl && { network_opened_stream: ours, network_opened: ours }),
    }
    expect(Object.fromEntries(measuredServers(report))).toEqual(expected)
    for (const { results } of report.measures) expect(results.taskmill!.median).toBeGreaterThan(0)
    const judged = report.measures.filter(({ goal_met }) => goal_met !== null).map(({ key }) => key)
    const ofCurl = ['network_stream', 'network_opened_stream', 'network_opened']
    expect(judged).toEqual(['network_to_host', ...(hasCurl ? ofCurl : [])])
  },
  PATIENCE_MS,
)

test.skipIf(!canFence)(
  'a quick report measures every row beside its floor (needs sandboxes, cc and bwrap), and leaves nothing behind',
  async () => {
    using temp = tempDir()
    const bench = runBench(temp.path, '--quick')
    const [stdout, stderr] = await Promise.all([new Response(bench.stdout).text(), new Response(bench.stderr).text()])
    expect({ code: await bench.exited, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('bench:') })
    expect(await Bun.file(join(temp.path, 'out/report.md')).text()).toBe(stdout.replace(/\n$/, ''))
    expect(leftovers(temp.path)).toEqual([])
    expect(processesOf(temp.path)).toEqual([])

    const reports = (await Bun.file(join(temp.path, 'out/report.json')).json()) as Report[]
    expect(reports.map(({ suite }) => suite)).toEqual(['control', 'shell', 'runtime', 'sandbox'])
    for (const { measures, noise } of reports) {
      expect(new Set(noise.map(({ workload }) => workload))).toEqual(new Set(measures.map(({ workload }) => workload)))
      for (const { key, goal, results, label } of measures) {
        expect({ key, goal }).toEqual({ key, goal: expect.anything() })
        expect({ key, names: Object.keys(results) }).toEqual({
          key,
          names: expect.arrayContaining(['taskmill', 'floor']),
        })
        for (const { median } of Object.values(results)) expect(median).toBeGreaterThan(0)
        expect(stdout).toContain(`${label.replaceAll('`', '')}, `)
      }
    }
    const beside = (suite: string, peer: string) =>
      reports.find((report) => report.suite === suite)!.measures.filter(({ results }) => peer in results).length
    if (Bun.which('make') !== null) expect(beside('control', 'make')).toBe(6)
    expect(beside('sandbox', 'bwrap')).toBe(3)
  },
  PATIENCE_MS,
)

test(
  'an interrupted run ends its servers and removes its files',
  async () => {
    using temp = tempDir()
    const bench = runBench(temp.path, 'control', '--quick', '--only', 'stall')
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

test(
  'an interrupted run ends the tasks of its runtime service, which outlive that',
  async () => {
    using temp = tempDir()
    const bench = runBench(temp.path, 'runtime', '--only', 'running')
    await until(
      () => processesOf(temp.path).filter((line) => line.includes('--task-dir') && line.endsWith('/bin/sleep 600')),
      (launchers) => launchers.length >= 10,
      { patienceMs: PATIENCE_MS },
    )
    bench.kill('SIGINT')
    expect(await bench.exited).toBe(130)
    expect(leftovers(temp.path)).toEqual([])
    expect(processesOf(temp.path)).toEqual([])
  },
  PATIENCE_MS,
)

test.each([
  [['--only', 'nothing'], 'unknown workload "nothing" (there are: accept, '],
  [['report', '--only', 'submit'], 'unknown workload "submit" (there are: accept, '],
  [['report', 'control'], 'the report and suites are measured one after the other: name one'],
  [['runtime', '--only', 'submit'], 'unknown workload "submit" (there are: running, '],
  [['all'], 'unknown suite "all" (there are: report, control, database, watching, runtime, sandbox, both, agent)'],
  [['both', '--server', 'mine=http://127.0.0.1:1'], 'the suite both compares nothing with other servers'],
  [['--server', 'mine=http://127.0.0.1:1'], '--command and --server: name one suite'],
  [
    ['control', 'runtime', '--server', 'mine=http://127.0.0.1:1'],
    '--command and --server need to know the API: name one',
  ],
])('%j is a usage error', async (argv, message) => {
  using temp = tempDir()
  const bench = runBench(temp.path, ...argv)
  expect(await new Response(bench.stderr).text()).toStartWith(`bench: ${message}`)
  expect(await bench.exited).toBe(2)
  expect(existsSync(join(temp.path, 'out'))).toBe(false)
})

/** Commands of living processes that run something below `dir`. */
function processesOf(dir: string): string[] {
  const { stdout } = Bun.spawnSync(['ps', '-eo', 'stat=,args='])
  const lines = stdout.toString().split('\n')
  return lines.filter((line) => line.includes(`${dir}/`) && !line.startsWith('Z'))
}
