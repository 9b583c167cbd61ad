/**
 * What a start makes of tasks that were being launched or ran when everything ended at once. Power cuts are made by hand:
 * the service and the processes of a task are killed, and the database and the files are left as a cut may leave them.
 */
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootId } from '../../shared/process/processes.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const OTHER_BOOT = '00000000-0000-4000-8000-000000000000'

/** Changes the row of a task while no service runs. */
function edit(dataDir: string, taskId: string, columns: Readonly<Record<string, string | null>>): void {
  const db = new Database(join(dataDir, 'runtime.db'))
  for (const [name, value] of Object.entries(columns)) {
    db.query(`update tasks set ${name} = ? where task_id = ?`).run(value, taskId)
  }
  db.close()
}

const crash = async (runtime: Runtime): Promise<void> => {
  runtime.process.kill('SIGKILL')
  await runtime.process.exited
}

/** A task that runs, its service and everything of it killed: as after a power cut. */
async function cutWhileRunning(dataDir: string): Promise<void> {
  await using runtime = await startRuntime({ dataDir })
  await runtime.script('echo up; exec sleep 600', { task_id: 'cut' })
  const { pid, shim_pid } = await runtime.printed('cut')
  await crash(runtime)
  process.kill(shim_pid!, 'SIGKILL')
  await until(() => isAlive(pid!), false)
}

/** A task that waits for its place, which another one has until `go` exists. */
async function crashWhileWaiting(dataDir: string, go: string, runs: string): Promise<void> {
  await using runtime = await startRuntime({ dataDir, flags: ['--max-running-tasks', '1'] })
  await runtime.script(`until [ -e ${go} ]; do sleep 0.01; done`, { task_id: 'first' })
  await runtime.script(`echo ran >> ${runs}; exit 7`, { task_id: 'second', metadata: { a: 'b' } })
  await crash(runtime)
}

describe('after a reboot', () => {
  test('a task without an outcome is lost, and nothing stays reserved', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await cutWhileRunning(dataDir)
    edit(dataDir, 'cut', { launch_boot_id: OTHER_BOOT })
    await using runtime = await startRuntime({ dataDir })
    expect(await runtime.ended('cut')).toMatchObject({
      status: 'failed',
      error: { code: 'internal', message: 'task lost during runtime restart' },
    })
    expect((await runtime.eventTypes('cut')).slice(-3)).toEqual(['recovered', 'resource_released', 'failed'])
    expect((await runtime.resources()).reserved).toEqual({ task_slots: 0, memory_bytes: 0, pids: 0 })
  })

  test('an outcome that was written counts', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const go = join(dir.path, 'go')
    {
      await using runtime = await startRuntime({ dataDir })
      await runtime.script(`echo up; until [ -e ${go} ]; do sleep 0.01; done; exit 42`, { task_id: 'done' })
      const { shim_pid } = await runtime.printed('done')
      await crash(runtime)
      writeFileSync(go, '')
      await until(() => isAlive(shim_pid!), false)
    }
    edit(dataDir, 'done', { launch_boot_id: OTHER_BOOT })
    // The cut came after the outcome was synced, and before the directory was.
    const taskDir = join(dataDir, 'tasks/done')
    renameSync(join(taskDir, 'outcome'), join(taskDir, 'started'))
    await using runtime = await startRuntime({ dataDir })
    expect(await runtime.ended('done')).toMatchObject({ status: 'failed', exit_code: 42, stdout: 'up\n' })
    expect((await runtime.eventTypes('done')).slice(-3)).toEqual(['recovered', 'resource_released', 'failed'])
  })

  test('a task that was about to be launched is not run: it may have run before', async () => {
    using dir = tempDir()
    const [dataDir, go, runs] = [join(dir.path, 'data'), join(dir.path, 'go'), join(dir.path, 'runs')]
    writeFileSync(runs, '')
    await crashWhileWaiting(dataDir, go, runs)
    edit(dataDir, 'second', { launch_boot_id: OTHER_BOOT })
    writeFileSync(go, '')
    await using runtime = await startRuntime({ dataDir })
    expect(await runtime.ended('second')).toMatchObject({
      status: 'failed',
      error: { code: 'internal', message: 'task lost during runtime restart' },
    })
    expect((await runtime.ended('first')).status).toBe('success')
    expect(readFileSync(runs, 'utf8')).toBe('')
  })
})

describe('after a crash of the service alone', () => {
  test('a task that was about to be launched and never was waits again, and runs once', async () => {
    using dir = tempDir()
    const [dataDir, go, runs] = [join(dir.path, 'data'), join(dir.path, 'go'), join(dir.path, 'runs')]
    await crashWhileWaiting(dataDir, go, runs)
    edit(dataDir, 'second', { launch_boot_id: bootId() })
    await using runtime = await startRuntime({ dataDir, flags: ['--max-running-tasks', '1'] })
    expect((await runtime.get('second')).status).toBe('accepted')
    expect(await runtime.resources()).toMatchObject({ reserved: { task_slots: 1 }, accepted_waiting_tasks: 1 })
    writeFileSync(go, '')
    expect(await runtime.ended('second')).toMatchObject({ status: 'failed', exit_code: 7, metadata: { a: 'b' } })
    expect(readFileSync(runs, 'utf8')).toBe('ran\n')
  })

  test('a task that waited is started from the database when its directory is gone', async () => {
    using dir = tempDir()
    const [dataDir, go, runs] = [join(dir.path, 'data'), join(dir.path, 'go'), join(dir.path, 'runs')]
    await crashWhileWaiting(dataDir, go, runs)
    rmSync(join(dataDir, 'tasks/second'), { recursive: true })
    writeFileSync(go, '')
    await using runtime = await startRuntime({ dataDir })
    expect(await runtime.ended('second')).toMatchObject({ status: 'failed', exit_code: 7 })
    expect(readFileSync(runs, 'utf8')).toBe('ran\n')
  })

  test('a task that cannot fit any more ends with the reason', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const go = join(dir.path, 'go')
    {
      await using runtime = await startRuntime({ dataDir, flags: ['--max-running-tasks', '1'] })
      await runtime.script(`until [ -e ${go} ]; do sleep 0.01; done`, { task_id: 'first' })
      await runtime.script('exit 0', { task_id: 'large', limits: { memory_bytes: 256 * 1024 * 1024 } })
      await crash(runtime)
    }
    writeFileSync(go, '')
    await using runtime = await startRuntime({ dataDir, flags: ['--capacity-memory-bytes', '1048576'] })
    const { status, error } = await runtime.ended('large')
    expect({ status, code: error?.code }).toEqual({ status: 'failed', code: 'internal' })
    expect(error?.message).toContain('--capacity-memory-bytes')
    expect((await runtime.ended('first')).status).toBe('success')
  })

  test('directories that no task has are removed, and those of tasks are not', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using runtime = await startRuntime({ dataDir })
      await runtime.runScript('exit 0', { task_id: 'kept' })
      await runtime.stop()
    }
    const stray = join(dataDir, 'tasks/stray/workspace')
    Bun.spawnSync(['mkdir', '-p', stray])
    await using runtime = await startRuntime({ dataDir })
    await until(() => Bun.spawnSync(['ls', join(dataDir, 'tasks')]).stdout.toString(), 'kept\n')
    expect((await runtime.get('kept')).status).toBe('success')
  })
})
