/**
 * A full disk: the runtime answers 503 to what it cannot keep, stores no half of it, forgets no outcome, and recovers.
 * Source: contract 4 (When it cannot keep what it accepts) and 5 (503 `unavailable`).
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import { startRuntime } from '../support/runtime.ts'
import { refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const DISK_BYTES = 12 * 1024 * 1024

/** A data directory on a small disk; tasks on it are ended before it goes. */
function place() {
  const dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const disk = smallDisk(dataDir, DISK_BYTES)
  const processes = endProcessesOf(dir.path)
  return {
    dataDir,
    file: (name: string) => join(dir.path, name),
    /** Full until the end of the block, or until `free`: before the service goes, which ends its tasks. */
    fill: () => {
      disk.fill()
      return { free: disk.free, ballast: disk.ballast, [Symbol.dispose]: disk.free }
    },
    [Symbol.asyncDispose]: async () => {
      await processes[Symbol.asyncDispose]()
      disk[Symbol.dispose]()
      dir[Symbol.dispose]()
    },
  }
}

describe.skipIf(!canMount)('a full disk (needs root, to mount a small one)', () => {
  test('503 unavailable, nothing half-stored, and it recovers when the disk does', async () => {
    await using at = place()
    {
      await using runtime = await startRuntime({ dataDir: at.dataDir })
      await runtime.run({ task_id: 'before', ...script('echo before') })
      const idle = await runtime.resources()
      using full = at.fill()
      const big = { task_id: 'refused', ...script(`echo ran; # ${'x'.repeat(100_000)}`) }
      for (let i = 0; i < 3; i++) {
        expect((await refused(await runtime.post(big))).slice(0, 2)).toEqual([503, 'unavailable'])
      }
      expect((await runtime.fetch('/api/v1/tasks/refused')).status).toBe(404)
      expect((await runtime.json<TaskListResponse>('/api/v1/tasks')).tasks.map(({ task_id }) => task_id)).toEqual([
        'before',
      ])
      expect(readdirSync(join(at.dataDir, 'tasks'))).toEqual(['before'])
      expect(await runtime.resources()).toEqual(idle)
      expect((await runtime.fetch('/healthz')).status).toBe(200)
      expect(await runtime.get('before')).toMatchObject({ status: 'success', stdout: 'before\n' })

      full.free()
      await until(() => runtime.post(big).then((response) => response.status), 200)
      expect(await runtime.ended('refused')).toMatchObject({ status: 'success', stdout: 'ran\n' })
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    expect((await runtime.get('before')).stdout).toBe('before\n')
    expect((await runtime.get('refused')).stdout).toBe('ran\n')
  })

  test('small requests that do not fit either are refused, and a 200 is a promise', async () => {
    await using at = place()
    const accepted: string[] = []
    {
      await using runtime = await startRuntime({ dataDir: at.dataDir, flags: ['--max-queued-tasks', '100000'] })
      using full = at.fill()
      for (let i = 0; i < 30; i++) {
        const response = await runtime.post({ task_id: `t-${i}`, ...script('echo ran') })
        expect([200, 503]).toContain(response.status)
        if (response.status === 200) accepted.push(`t-${i}`)
      }
      expect(accepted.length).toBeLessThan(30)
      full.free()
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    const { tasks } = await runtime.json<TaskListResponse>('/api/v1/tasks?limit=100')
    expect(tasks.map(({ task_id }) => task_id).toSorted()).toEqual(accepted.toSorted())
    for (const id of accepted) expect((await runtime.ended(id)).status).not.toBe('running')
  })

  test.each([
    ['exit 7', { status: 'failed', exit_code: 7, error: { code: 'exit_nonzero' } }],
    ['exit 0', { status: 'success', exit_code: 0 }],
  ])('a task that ends on it has its true outcome: %s', async (ending, outcome) => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    const id = await runtime.script(`echo on; ${waitFor(at.file('go'))}; : > ${at.file('done')}; ${ending}`)
    await runtime.printed(id)
    const { pid } = await runtime.reached(id, 'running')
    using full = at.fill()
    await Bun.write(at.file('go'), '')
    await until(() => existsSync(`/proc/${pid}`), false)
    full.free()
    expect(await runtime.ended(id)).toMatchObject({ ...outcome, stdout: 'on\n' })
    expect((await runtime.resources()).active_reservations).toEqual([])
    expect(await runtime.runScript('echo next')).toMatchObject({ status: 'success', stdout: 'next\n' })
  })

  test('a task that ends on it while serve is down, too', async () => {
    await using at = place()
    let id: string
    let pid: number | undefined
    {
      await using runtime = await startRuntime({ dataDir: at.dataDir })
      id = await runtime.script(`echo on; ${waitFor(at.file('go'))}; exit 7`)
      await runtime.printed(id)
      pid = (await runtime.reached(id, 'running')).shim_pid
      await runtime.stop('SIGKILL')
    }
    using full = at.fill()
    await Bun.write(at.file('go'), '')
    await until(() => existsSync(`/proc/${pid}`), false)
    full.free()
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    expect(await runtime.ended(id)).toMatchObject({ status: 'failed', exit_code: 7, stdout: 'on\n' })
  })

  test('a kill on it is answered at once: 200, or 503 unavailable; and the task ends as cancelled', async () => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    const id = await runtime.submit(SLEEP)
    await runtime.reached(id, 'running')
    using full = at.fill()
    const response = await fetch(`${runtime.url}/api/v1/tasks/${id}/kill`, {
      method: 'POST',
      signal: AbortSignal.timeout(10_000),
    })
    expect([200, 503]).toContain(response.status)
    if (response.status === 503) expect((await refused(response))[1]).toBe('unavailable')
    full.free()
    if (response.status === 503) expect((await runtime.kill(id)).status).toBe(200)
    expect(await runtime.ended(id)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
  })

  test('a kill that is 200 on it is not forgotten when the service is killed', async () => {
    await using at = place()
    await using first = await startRuntime({ dataDir: at.dataDir })
    const id = await first.submit(SLEEP)
    await first.reached(id, 'running')
    {
      using _full = at.fill()
      expect((await first.kill(id)).status).toBe(200)
      await first.stop('SIGKILL')
    }
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    expect(await runtime.ended(id)).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
  })

  test('a kill of a task that waits is 503 on it, and changes nothing: the task runs once there is room', async () => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir, flags: ['--max-running-tasks', '1'] })
    const first = await runtime.submit(SLEEP)
    const id = await runtime.script(`echo ran > ${at.file('ran')}`)
    using full = at.fill()
    for (let i = 0; i < 3; i++) {
      expect((await refused(await runtime.kill(id))).slice(0, 2)).toEqual([503, 'unavailable'])
      expect(await runtime.get(id)).toMatchObject({ status: 'accepted' })
    }
    await runtime.kill(first)
    full.free()
    expect(await runtime.ended(id)).toMatchObject({ status: 'success' })
    expect(await runtime.eventTypes(id)).not.toContain('kill_requested')
    expect(existsSync(at.file('ran'))).toBe(true)
  })

  test('a kill of a task whose place cannot be written down is 503, and changes nothing', async () => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir, flags: ['--max-running-tasks', '1'] })
    const first = await runtime.script(`echo on; ${waitFor(at.file('go'))}`)
    const id = await runtime.script(`echo ran > ${at.file('ran')}`)
    await runtime.printed(first)
    using full = at.fill()
    await Bun.write(at.file('go'), '')
    await until(
      () => runtime.resources(),
      ({ accepted_waiting_tasks }) => accepted_waiting_tasks === 0,
    )
    expect((await refused(await runtime.kill(id))).slice(0, 2)).toEqual([503, 'unavailable'])
    full.free()
    expect((await runtime.ended(id)).status).toBe('success')
    expect((await runtime.ended(first)).status).toBe('success')
    expect(existsSync(at.file('ran'))).toBe(true)
  })

  test('a task whose place cannot be written down for long runs as long as it may afterwards', async () => {
    await using at = place()
    const flags = ['--max-running-tasks', '1', '--termination-grace-ms', '10']
    await using runtime = await startRuntime({ dataDir: at.dataDir, flags })
    const first = await runtime.script(`echo on; ${waitFor(at.file('go'))}`)
    const id = await runtime.script('sleep 1; echo whole', { limits: { wall_time_ms: 8_000 } })
    await runtime.printed(first)
    using full = at.fill()
    await Bun.write(at.file('go'), '')
    await until(
      () => runtime.resources(),
      ({ accepted_waiting_tasks }) => accepted_waiting_tasks === 0,
    )
    const since = performance.now()
    await until(
      () => performance.now() - since,
      (ms) => ms > 13_500, // its wall time, and all that a launcher is given to end it
    )
    full.free()
    expect(await runtime.ended(id)).toMatchObject({ status: 'success', stdout: 'whole\n' })
  })

  test('a disk that is read-only refuses with 503, and what ends meanwhile has its result file afterwards', async () => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    const id = await runtime.script(`until test -e ${at.file('go')}; do sleep 0.01; done; echo done`)
    await runtime.reached(id, 'running')
    const mount = (...argv: string[]) => expect(Bun.spawnSync(['mount', ...argv]).exitCode).toBe(0)
    mount('--bind', at.dataDir, at.dataDir)
    try {
      mount('-o', 'remount,bind,ro', at.dataDir)
      expect((await refused(await runtime.post(SLEEP))).slice(0, 2)).toEqual([503, 'unavailable'])
      expect((await runtime.fetch('/readyz')).status).toBe(503)
      writeFileSync(at.file('go'), '')
      expect(await runtime.ended(id)).toMatchObject({ status: 'success', stdout: 'done\n' })
    } finally {
      expect(Bun.spawnSync(['umount', at.dataDir]).exitCode).toBe(0)
    }
    const { artifacts } = await runtime.get(id)
    await until(() => existsSync(artifacts.result_path))
    expect(JSON.parse(readFileSync(artifacts.result_path, 'utf8'))).toEqual(await runtime.get(id))
  })

  test('a task that fills it fails by itself, and the service goes on', async () => {
    await using at = place()
    await using runtime = await startRuntime({ dataDir: at.dataDir })
    const id = await runtime.script(`cat /dev/zero > big; echo $? > ${at.file('code')}; rm big`)
    const task = await runtime.ended(id)
    expect(readFileSync(at.file('code'), 'utf8')).toBe('1\n')
    expect(task).toMatchObject({ status: 'success', exit_code: 0 })
    expect((await runtime.fetch('/healthz')).status).toBe(200)
    await until(() => runtime.post(script('echo next')).then((response) => response.status), 200)
  })

  test.each([
    ['the first', false],
    ['another', true],
  ])('a start on it, %s, either works or fails with one line that says why', async (_, isAnother) => {
    await using at = place()
    if (isAnother) {
      await using runtime = await startRuntime({ dataDir: at.dataDir })
      await runtime.runScript('true')
      await runtime.stop('SIGKILL')
    }
    using _full = at.fill()
    const start = startRuntime({ dataDir: at.dataDir })
    const outcome = await start.then(
      async (runtime) => {
        await runtime.dispose()
        return 'started'
      },
      (error: Error) => error.message,
    )
    if (outcome === 'started') return
    expect(outcome).toMatch(/taskmill-runtime: [^\n]*(space|full|disk|ENOSPC)[^\n]*\n$/)
    expect(outcome).not.toContain('backup')
  })
})

describe('/readyz that fails is 503 unavailable, and /healthz is not', () => {
  test('when the data directory is gone', async () => {
    await using runtime = await startRuntime()
    rmSync(runtime.dataDir, { recursive: true })
    expect((await refused(await runtime.fetch('/readyz'))).slice(0, 2)).toEqual([503, 'unavailable'])
    expect((await refused(await runtime.post(script('true')))).slice(0, 2)).toEqual([503, 'unavailable'])
    expect((await runtime.fetch('/healthz')).status).toBe(200)
  })

  test.skipIf(!canMount)(
    'from the first submission that the disk refuses, until it takes one (needs root)',
    async () => {
      await using at = place()
      await using runtime = await startRuntime({ dataDir: at.dataDir })
      const big = script(`echo ran; # ${'x'.repeat(500_000)}`)
      expect((await runtime.fetch('/readyz')).status).toBe(200)
      using full = at.fill()
      // Room for what is small, so that nothing but a submission meets the end of the disk.
      truncateSync(full.ballast, statSync(full.ballast).size - 200_000)
      for (let i = 0; i < 3; i++) {
        expect((await refused(await runtime.post(big))).slice(0, 2)).toEqual([503, 'unavailable'])
        expect((await refused(await runtime.fetch('/readyz'))).slice(0, 2)).toEqual([503, 'unavailable'])
      }
      expect((await runtime.post(script('true'))).status).toBe(200)
      expect((await runtime.fetch('/readyz')).status).toBe(200)
      expect((await runtime.post(big)).status).toBe(503)
      full.free()
      expect((await runtime.fetch('/readyz')).status).toBe(200)
      expect((await runtime.post(big)).status).toBe(200)
    },
  )
})
