/**
 * The process that starts tasks for serve may be killed, stopped or left alone: no task is lost, run twice or harmed by
 * that. Against the built service, whose fork server is found as its child. Source: spec, Events; contract 2, 4 and 5, Runtime.
 */
import { describe, expect, test } from 'bun:test'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { taskDirId } from '../../runtime/files/task-dir.ts'
import { tryLock } from '../../shared/files/directory-lock.ts'
import { drain, openBothEnds } from '../support/fifo.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { endProcessesOf, forkServerOf as forkServerOfService, gone, stopProcess } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

const forkServerOf = (runtime: Runtime): Promise<number> => forkServerOfService(runtime.process.pid)

test('a task whose launcher is killed after it is ended all the same', async () => {
  await using runtime = await startRuntime()
  const id = await runtime.script('echo ready; sleep 600')
  const { shim_pid, pid } = await runtime.printed(id)
  process.kill(await forkServerOf(runtime), 'SIGKILL')
  process.kill(shim_pid!, 'SIGKILL')
  const { status, error } = await runtime.ended(id)
  expect([status, error!.code]).toEqual(['failed', 'internal'])
  expect(error!.message).toStartWith('task lost: its launcher ended')
  await gone(pid!)
})

test('what a killed service asked of it is started once, and no other service begins before', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  await using _ = endProcessesOf(dir.path)
  const runs = join(dir.path, 'runs')
  const flags = ['--max-running-tasks', '8']
  let ids: string[]
  let forkServer: number
  {
    await using runtime = await startRuntime({ dataDir, flags })
    await runtime.runScript('true')
    forkServer = await forkServerOf(runtime)
    await stopProcess(forkServer)
    ids = await Promise.all(Array.from({ length: 8 }, (_, i) => runtime.script(`echo ${i} >> ${runs}; exit ${i}`)))
    expect(await runtime.stop('SIGKILL')).toBe('SIGKILL')
  }
  expect(await isAlive(forkServer)).toBe(true)
  const lock = openSync(join(dataDir, 'runtime.lock'), 'r')
  expect(tryLock(lock)).toBe(false)
  closeSync(lock)
  const starting = startRuntime({ dataDir, flags }) // waits for it
  expect(existsSync(runs)).toBe(false)
  process.kill(forkServer, 'SIGCONT')
  await using runtime = await starting
  await gone(forkServer) // its exit releases the lock a moment before it is over
  const ended = await Promise.all(ids.map((id) => runtime.ended(id)))
  expect(ended.map(({ exit_code }) => exit_code)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(readFileSync(runs, 'utf8').trim().split('\n').toSorted()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'])
})

describe('a task that does not start because the fork server hangs', () => {
  async function hang(runtime: Runtime): Promise<Disposable> {
    await runtime.runScript('true')
    const forkServer = await forkServerOf(runtime)
    await stopProcess(forkServer)
    let isHanging = true
    const goOn = () => {
      if (isHanging) process.kill(forkServer, 'SIGCONT')
      isHanging = false
    }
    return { [Symbol.dispose]: goOn }
  }

  /** It has its end, gives its place back, and does not run when what hung goes on. */
  async function expectNeverRun(runtime: Runtime, id: string, hanging: Disposable): Promise<void> {
    expect((await runtime.resources()).active_reservations).toEqual([])
    const ended = await runtime.get(id)
    hanging[Symbol.dispose]()
    expect((await runtime.runScript('echo next')).stdout).toBe('next\n')
    expect(await runtime.get(id)).toEqual(ended)
    expect(ended.stdout).toBe('')
    expect(readFileSync(ended.artifacts.stdout_path, 'utf8')).toBe('')
    expect(await runtime.eventTypes(id)).not.toContain('started')
  }

  test('fails when its wall time, and all that a launcher is given to end it, is over', async () => {
    await using runtime = await startRuntime()
    using hanging = await hang(runtime)
    const id = await runtime.script('echo ran', { limits: { wall_time_ms: 100 } })
    expect(await runtime.ended(id)).toMatchObject({
      status: 'failed',
      error: { code: 'launch_failed', message: expect.stringContaining('did not begin in time') },
    })
    await expectNeverRun(runtime, id, hanging)
  })
})

test('a task whose end somebody else heard is found to have ended', async () => {
  using dir = tempDir()
  await using runtime = await startRuntime()
  const go = join(dir.path, 'go')
  const id = await runtime.script(`echo on; ${waitFor(go)}; exit 7`)
  await runtime.printed(id)
  await runtime.reached(id, 'running')
  const pipe = openBothEnds(join(runtime.dataDir, 'launchers'))
  await stopProcess(runtime.process.pid)
  try {
    await Bun.write(go, '')
    let heard = ''
    await until(
      () => (heard += drain(pipe)),
      () => heard.includes('gone '),
    )
  } finally {
    process.kill(runtime.process.pid, 'SIGCONT')
    closeSync(pipe)
  }
  expect(await runtime.ended(id)).toMatchObject({ status: 'failed', exit_code: 7 })
})

test('a task that was killed before it started does not start after a crash', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  await using _ = endProcessesOf(dir.path)
  {
    await using runtime = await startRuntime({ dataDir })
    await runtime.runScript('true')
    const forkServer = await forkServerOf(runtime)
    await stopProcess(forkServer)
    await runtime.script(`echo ran > ${join(dir.path, 'ran')}`, { task_id: 'killed' })
    expect((await runtime.kill('killed')).status).toBe(200)
    await runtime.stop('SIGKILL')
    process.kill(forkServer, 'SIGKILL')
  }
  await using runtime = await startRuntime({ dataDir })
  expect(await runtime.ended('killed')).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
  expect((await runtime.eventTypes('killed')).filter((type) => type === 'kill_requested')).toEqual(['kill_requested'])
  expect((await runtime.runScript('echo next')).stdout).toBe('next\n')
  expect((await runtime.resources()).active_reservations).toEqual([])
  expect(existsSync(join(dir.path, 'ran'))).toBe(false)
})

test.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)('it ends with its service, by %s', async (signal) => {
  await using runtime = await startRuntime()
  await runtime.runScript('true')
  const forkServer = await forkServerOf(runtime)
  await runtime.stop(signal)
  await gone(forkServer)
})

test('it is asked for a launcher in the very directory of a task, not in one that gets its name later', async () => {
  await using runtime = await startRuntime()
  const { task_id, stdout } = await runtime.runScript("tr '\\0' ' ' < /proc/$PPID/cmdline")
  expect(stdout).toContain(` --task-dir-id ${taskDirId(join(runtime.dataDir, 'tasks', task_id))} `)
})
