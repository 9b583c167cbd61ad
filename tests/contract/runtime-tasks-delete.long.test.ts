/**
 * Goal: a runtime task that is gone from control (deleted or retired) is gone from the runtime service, too, with
 * its files; one that runs is left alone. No answer of control waits for it.
 * Method: both real services.
 */
import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { type Pair, startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

const remove = (pair: Pair, id: string) => pair.control.fetch(`/tasks/${id}`, { method: 'DELETE' })

const noneThere = (pair: Pair) => until(() => pair.runtime.list(), [])

test('a deleted task: 204, and its files go, those of its earlier attempts too', async () => {
  await using pair = await startPair({ controlEnv: { SERVICE_RUNTIME_OWNER: 'ci' } })
  await pair.script('a', 'exit 1', { retry: 1 })
  const { there } = await pair.ended('a')
  expect((await pair.runtime.list()).length).toBe(2)
  expect((await remove(pair, 'a')).status).toBe(204)
  await noneThere(pair)
  await until(() => existsSync(there.artifacts.task_dir), false)
})

test('a deleted task with attempts that missed their start: only the others are asked for', async () => {
  await using pair = await startPair({
    controlFlags: ['--max-concurrency', '1'],
    controlEnv: { SERVICE_SHELL_POLICY: 'open' },
    runtimeFlags: ['--log-level', 'debug'], // answers other than errors, too
  })
  await pair.control.submit([{ id: 'holds', type: 'shell', params: { script: waitFor(pair.file('go')) } }])
  const missing = { queue_timeout: 5, backoff: { max_ms: 10 } }
  await pair.script('never', 'true', { ...missing, retry: 20 })
  await pair.script('late', 'exit 3', { ...missing, queue_timeout: 300, retry: 30, retry_on: ['timeout'] })
  expect(await pair.control.ended('never')).toMatchObject({ status: 'failed', attempt: 21 })
  await until(
    () => pair.control.get('late'),
    ({ attempt }) => attempt! > 11,
  )
  await Bun.write(pair.file('go'), '')
  await pair.ended('late')
  await remove(pair, 'never')
  await remove(pair, 'late')
  await noneThere(pair)
  const removals = await until(
    () => pair.runtime.log.filter(({ method }) => method === 'DELETE'),
    ({ length }) => length > 0,
  )
  expect(removals.map(({ status }) => status)).toEqual([204])
})

test('a deleted task whose runtime service is away: 204 at once, and it goes once both are back', async () => {
  await using pair = await startPair()
  await pair.script('a', 'echo')
  await pair.ended('a')
  await pair.stopRuntime('SIGTERM')
  expect((await remove(pair, 'a')).status).toBe(204)
  await pair.stopControl('SIGKILL')
  await pair.startControl()
  await pair.startRuntime()
  await noneThere(pair)
})

test('a replaced task stays until it is deleted below its graph, and then only that one goes', async () => {
  await using pair = await startPair()
  await pair.script('a', 'echo first')
  const { here: first } = await pair.ended('a')
  await pair.script('a', 'echo second')
  const { here } = await pair.ended('a')
  const path = `/graphs/${first.graph_id}/tasks/a`
  expect(await (await pair.control.fetch(`${path}/logs`)).text()).toBe('first\n')
  expect((await pair.control.fetch(path, { method: 'DELETE' })).status).toBe(204)
  const left = await until(
    () => pair.runtime.list(),
    (tasks) => tasks.length === 1,
  )
  expect(left[0]!.task_id).toBe(here.handle_id!)
})

test('after a retry in place, files of earlier attempts stay; they go with the task, also with one that is skipped now', async () => {
  await using pair = await startPair()
  const script = `echo > out.txt; [ -e '${pair.file('go')}' ]`
  await pair.control.submit([
    { id: 'a', type: 'runtime.script', params: { script } },
    { id: 'handler', type: 'runtime.script', params: { script }, depends_on: ['a'], run_if: 'failed' },
  ])
  await pair.control.ended('handler')
  await Bun.write(pair.file('go'), '')
  expect((await pair.control.fetch('/tasks/a/retry', { method: 'POST' })).status).toBe(202)
  await until(
    () => pair.control.get('handler'),
    ({ status }) => status === 'skipped',
  )
  const fileOf = async (attempt: number) => pair.control.fetch(`/tasks/a/files/out.txt?attempt=${attempt}`)
  for (const attempt of [1, 2]) expect((await fileOf(attempt)).status).toBe(200)
  expect((await pair.runtime.list()).length).toBe(3)
  await remove(pair, 'a')
  await until(
    () => pair.runtime.list(),
    ({ length }) => length === 1,
  )
  await remove(pair, 'handler')
  await noneThere(pair)
})

test('retired graphs go', async () => {
  await using pair = await startPair({ controlFlags: ['--retention', '50ms'] })
  await pair.control.submit([
    { id: 'a', type: 'runtime.script', params: { script: 'echo' } },
    { id: 'b', type: 'runtime.script', params: { script: 'exit 1' }, depends_on: ['a'] },
    { id: 'c', type: 'runtime.script', params: { script: 'echo' }, depends_on: ['b'] },
  ])
  await until(() => pair.control.list(), [])
  await noneThere(pair)
})

test('a deleted task that runs is not touched; its files go once it has ended', async () => {
  await using pair = await startPair()
  await pair.script('a', `echo; while [ ! -e '${pair.file('go')}' ]; do sleep 0.02; done; echo > '${pair.file('ran')}'`)
  const { task_id } = await pair.running('a')
  expect((await remove(pair, 'a')).status).toBe(204)
  expect(await pair.runtime.get(task_id)).toMatchObject({ status: 'running' })
  await Bun.write(pair.file('go'), '')
  await noneThere(pair)
  expect(existsSync(pair.file('ran'))).toBe(true)
})

test.each(['goes on', 'is killed'])('a deleted graph goes with all of its files when control %s', async (what) => {
  await using pair = await startPair()
  const { graph_id } = await pair.control.submit([
    { id: 'a', type: 'runtime.script', params: { script: 'echo' } },
    { id: 'b', type: 'runtime.script', params: { script: 'exit 1' }, retry: 1, depends_on: ['a'] },
  ])
  await pair.control.ended('b')
  expect((await pair.runtime.list()).length).toBe(3)
  expect((await pair.control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })).status).toBe(204)
  if (what === 'is killed') {
    await pair.stopControl('SIGKILL')
    rmSync(pair.file('control/runtime-drops.jsonl'), { force: true }) // as if it had been killed before it wrote that
    await pair.startControl()
  }
  await noneThere(pair)
})
