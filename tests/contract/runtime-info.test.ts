/**
 * What the runtime says of itself: health, readiness, info, capabilities, configuration, metrics.
 * Source: spec, Endpoints B and Other runtime records; contract 0 (flags and their defaults) and 2.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type {
  RuntimeCapabilities,
  RuntimeConfigSummary,
  RuntimeHealth,
  RuntimeInfo,
} from '../../shared/contract/runtime-info.ts'
import { readMetrics, sampleValue } from '../support/metrics-text.ts'
import { Runtime, startRuntime } from '../support/runtime.ts'
import { command, SLEEP } from '../support/runtime-tasks.ts'
import { startService } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { startTokenRuntime, TOKEN, WITH_TOKEN } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const WITHOUT = ['--disable-linux-sandbox', '--disable-cgroup']

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: [...WITHOUT, '--runtime-id', 'my-runtime'] })
})
afterAll(() => runtime.dispose())

const info = (service = runtime) => service.json<RuntimeInfo>('/api/v1/runtime/info')
const capabilities = (service = runtime) => service.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
const config = (service = runtime) => service.json<RuntimeConfigSummary>('/api/v1/runtime/config')

test('liveness is { status: ok, version }, readiness { status: ready, version }, with the version of the info', async () => {
  const { version } = await info()
  expect(version).not.toBe('')
  expect(await runtime.json<RuntimeHealth>('/healthz')).toEqual({ status: 'ok', version, clock: expect.any(String) })
  expect(await runtime.json<RuntimeHealth>('/readyz')).toEqual({ status: 'ready', version })
})

describe('info', () => {
  test('holds runtime id, version, start time, snapshot version and platform', async () => {
    const before = Date.now()
    await using other = await startRuntime({ env: { SERVICE_RUNTIME_ID: 'by-variable' } })
    const answer = await info(other)
    const arch = { x64: 'x64', arm64: 'arm64' }[process.arch as string] ?? expect.any(String)
    expect(answer).toEqual({
      runtime_id: 'by-variable',
      version: expect.any(String),
      started_at: expect.stringMatching(TIME),
      snapshot_version: 'v1',
      platform: { os: process.platform, arch, containerized: expect.any(Boolean), kubernetes: expect.any(Boolean) },
    })
    expect(Date.parse(answer.started_at)).toBeGreaterThanOrEqual(before - 1_000)
    expect(Date.parse(answer.started_at)).toBeLessThanOrEqual(Date.now())
    expect(await info(other)).toEqual(answer)
  })

  test('the runtime id is the same everywhere, and the flag beats the variable', async () => {
    await using other = await startRuntime({ flags: ['--runtime-id', 'by-flag'], env: { SERVICE_RUNTIME_ID: 'other' } })
    const ids = [await info(other), await capabilities(other), await config(other), await other.resources()]
    expect(ids.map(({ runtime_id }) => runtime_id)).toEqual(['by-flag', 'by-flag', 'by-flag', 'by-flag'])
  })
})

describe('capabilities', () => {
  test('have their groups, and are generated at startup', async () => {
    const manifest = await capabilities()
    expect(Object.keys(manifest).toSorted()).toEqual([
      ...['collected_at', 'degraded', 'enhanced_semantics', 'execution', 'overrides', 'platform', 'resources'],
      ...['runtime_id', 'sandbox', 'snapshot_version', 'stable_semantics', 'storage', 'warnings'],
    ])
    expect(manifest).toMatchObject({
      ...{ runtime_id: 'my-runtime', snapshot_version: 'v1', platform: (await info()).platform },
      execution: { command: true, script: true, process_group: true },
      storage: { data_dir_writable: true, file_bundles: true },
    })
    expect(manifest.collected_at).toMatch(TIME)
    expect(manifest.degraded).toBeBoolean()
    for (const list of [manifest.stable_semantics, manifest.enhanced_semantics, manifest.warnings]) {
      for (const sentence of list) expect(sentence).toMatch(/[a-z]{3}/)
    }
    expect(manifest.stable_semantics.length).toBeGreaterThan(0)
    await runtime.run(command('/bin/true'))
    expect(await capabilities()).toEqual(manifest)
  })

  test('what is disabled is an override, and not there', async () => {
    const { sandbox, resources, overrides, degraded, warnings } = await capabilities()
    expect(overrides).toEqual({ linux_sandbox: 'disabled', cgroup: 'disabled' })
    expect(sandbox).toMatchObject({ process: true, linux_sandbox: false, chroot: false })
    expect(resources).toMatchObject({
      ...{ rlimit_cpu: true, rlimit_memory: true, ledger: true },
      ...{ cgroup_writable: false, pids_limit: false, oom_detection: false },
    })
    expect(degraded).toBe(true)
    expect(warnings.length).toBeGreaterThan(0)
  })

  test('have the shape of the contract, all namespaces and the capacity of the resources snapshot', async () => {
    const { sandbox, resources } = await capabilities()
    expect(Object.keys(sandbox).toSorted()).toEqual(['chroot', 'linux_sandbox', 'namespaces', 'process', 'rootless'])
    expect(Object.keys(sandbox.namespaces).toSorted()).toEqual(['cgroup', 'ipc', 'mount', 'net', 'pid', 'user', 'uts'])
    expect(Object.keys(resources).toSorted()).toEqual([
      ...['capacity', 'cgroup_version', 'cgroup_writable', 'ledger', 'memory_limit', 'oom_detection', 'pids_limit'],
      ...['rlimit_cpu', 'rlimit_memory'],
    ])
    expect(resources.capacity).toEqual((await runtime.resources()).capacity)
  })
})

describe('config', () => {
  test('is the settings that are no secret, with the defaults of the contract', async () => {
    await using service = new Runtime(
      await startService('taskmill-runtime', ['serve', '--listen-addr', '127.0.0.1:0'], {}),
    )
    const summary = await config(service)
    expect(summary).toMatchObject({
      ...{ max_running_tasks: 4, max_queued_tasks: 128, termination_grace_ms: 5_000, result_retention_secs: 604_800 },
      ...{
        gc_interval_ms: 1_000,
        dispatch_poll_interval_ms: 250,
        default_capability_mode: 'adaptive',
        default_network: 'none',
        egress_deny: [],
        max_egress_connections: 4_096,
        own_egress_connections: 512,
      },
    })
    expect(Object.keys(summary).toSorted()).toEqual([
      ...['cgroup_enabled', 'cgroup_root', 'data_dir', 'default_capability_mode', 'default_network'],
      ...[
        'dispatch_poll_interval_ms',
        'egress_deny',
        'gc_interval_ms',
        'listen_addr',
        'max_egress_connections',
        'max_queued_tasks',
        'max_running_tasks',
        'own_egress_connections',
        'result_retention_secs',
      ],
      ...['runtime_id', 'termination_grace_ms'],
    ])
  })

  test('is what the flags say', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'here')
    const flags = [
      ...['--max-running-tasks', '7', '--max-queued-tasks=9', '-termination-grace-ms', '11'],
      ...['--result-retention-secs', '13', '--gc-interval-ms', '1700', '--dispatch-poll-interval-ms=1900'],
      ...['--default-capability-mode', 'strict', '--default-network', 'host', '--disable-cgroup', '--runtime-id', 'x'],
    ]
    await using service = await startTokenRuntime({ dataDir, flags, env: { SERVICE_TOKEN: TOKEN } })
    const response = await service.fetch('/api/v1/runtime/config', { headers: WITH_TOKEN })
    const text = await response.text()
    expect(JSON.parse(text)).toMatchObject({
      ...{ runtime_id: 'x', data_dir: dataDir, max_running_tasks: 7, max_queued_tasks: 9, termination_grace_ms: 11 },
      ...{ result_retention_secs: 13, gc_interval_ms: 1_700, dispatch_poll_interval_ms: 1_900 },
      ...{ cgroup_enabled: false, default_capability_mode: 'strict', default_network: 'host' },
    })
    expect(text).not.toContain(TOKEN)
  })
})

describe('metrics', () => {
  const read = async (service: Runtime) => readMetrics(await (await service.fetch('/metrics')).text())

  test('are text/plain; version=0.0.4, valid, and names start with service_runtime_', async () => {
    const response = await runtime.fetch('/metrics')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('text/plain; version=0.0.4')
    const metrics = readMetrics(await response.text())
    expect(metrics.size).toBeGreaterThan(0)
    for (const [name, { help }] of metrics) {
      expect(name).toStartWith('service_runtime_')
      expect([name, help]).toEqual([name, true])
    }
    const types = ['tasks_total', 'tasks_running', 'task_errors_total', 'task_duration_ms'].map(
      (name) => metrics.get(`service_runtime_${name}`)?.type,
    )
    expect(types).toEqual(['counter', 'gauge', 'counter', 'histogram'])
  })

  test('count ends by status, errors by code, and how long tasks took', async () => {
    await using service = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    await service.run(command('/bin/true'))
    await service.run(command('/bin/true'))
    await service.run(command('/bin/false'))
    await service.run(command('/no/such'))
    await service.run({ ...command('/bin/sleep', '600'), limits: { wall_time_ms: 300 } })
    const first = await service.submit(SLEEP)
    await service.reached(first, 'running')
    await service.kill(await service.submit(SLEEP))
    await service.kill(first)
    await service.ended(first)
    const metrics = await read(service)
    const value = (name: string, labels?: Record<string, string>) =>
      sampleValue(metrics, `service_runtime_${name}`, labels)
    expect({
      started: value('tasks_total', { status: 'running' }),
      success: value('tasks_total', { status: 'success' }),
      failed: value('tasks_total', { status: 'failed' }),
      cancelled: value('tasks_total', { status: 'cancelled' }),
      running: value('tasks_running'),
      exitNonzero: value('task_errors_total', { code: 'exit_nonzero' }),
      launchFailed: value('task_errors_total', { code: 'launch_failed' }),
      timeout: value('task_errors_total', { code: 'timeout' }),
      cancelledErrors: value('task_errors_total', { code: 'cancelled' }),
    }).toEqual({
      ...{ started: 5, success: 2, failed: 3, cancelled: 2, running: 0 },
      ...{ exitNonzero: 1, launchFailed: 1, timeout: 1, cancelledErrors: 2 },
    })
  })

  test('have a histogram whose buckets are cumulative and end with all', async () => {
    await using service = await startRuntime()
    for (const seconds of ['0', '0', '0.2']) await service.run(command('/bin/sleep', seconds))
    const { samples } = (await read(service)).get('service_runtime_task_duration_ms')!
    const buckets = samples.filter(({ name }) => name.endsWith('_bucket'))
    const bounds = buckets.map(({ labels }) => (labels.le === '+Inf' ? Infinity : Number(labels.le)))
    const counts = buckets.map(({ value }) => value)
    expect(bounds.length).toBeGreaterThan(3)
    expect(bounds.toSorted((a, b) => a - b)).toEqual(bounds)
    expect(counts.toSorted((a, b) => a - b)).toEqual(counts)
    expect([bounds.at(-1), counts.at(-1)]).toEqual([Infinity, 3])
    expect(counts[bounds.findLastIndex((bound) => bound < 200)]).toBeLessThan(3)
    const of = (suffix: string) => samples.find(({ name }) => name.endsWith(suffix))!.value
    expect(of('_count')).toBe(3)
    expect(of('_sum')).toBeGreaterThanOrEqual(200)
    expect(of('_sum')).toBeLessThan(60_000)
  })

  test('have gauges for what runs, what waits, capacity and reservations', async () => {
    const flags = ['--max-running-tasks', '1', '--capacity-memory-bytes', '4000000000', '--capacity-pids', '500']
    await using service = await startRuntime({ flags })
    await service.submit({ ...SLEEP, limits: { memory_bytes: 1_000_000_000, pids_max: 40 } })
    await service.submit(SLEEP)
    await service.submit(SLEEP)
    await until(async () => sampleValue(await read(service), 'service_runtime_tasks_running'), 1)
    const gauges = [...(await read(service))].filter(([, { type }]) => type === 'gauge')
    const valuesOf = (word: RegExp) =>
      gauges.flatMap(([name, { samples }]) => (word.test(name) ? samples.map(({ value }) => value) : []))
    expect(valuesOf(/queue/)).toContain(2)
    for (const amount of [1, 4_000_000_000, 500]) expect(valuesOf(/capacity/)).toContain(amount)
    for (const amount of [1, 1_000_000_000, 40]) expect(valuesOf(/reserv/)).toContain(amount)
  })
})
