/** DELETE /tasks/{id}. Source: spec, States A; contract, Delete. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
let gate: Gate
beforeAll(async () => {
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(() => control.dispose())
beforeEach(() => {
  gate = new Gate()
})
afterEach(() => gate[Symbol.dispose]())

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const remove = (id: string, service = control) =>
  service.fetch(`/tasks/${encodeURIComponent(id)}`, { method: 'DELETE' })

async function removed(id: string, service = control): Promise<void> {
  expect((await remove(id, service)).status).toBe(204)
  expect((await service.fetch(`/tasks/${id}`)).status).toBe(404)
}

describe('the answer', () => {
  test('is 204 without a body, and the record is gone', async () => {
    await control.submit([noop('gone'), noop('stays')])
    await control.ended('gone')
    await control.ended('stays')
    const response = await remove('gone')
    expect(response.status).toBe(204)
    expect(await response.text()).toBe('')
    expect(response.headers.has('content-type')).toBe(false)
    expect((await control.fetch('/tasks/gone')).status).toBe(404)
    const ids = (await control.list()).map((task) => task.id)
    expect(ids).not.toContain('gone')
    expect(ids).toContain('stays')
  })

  test('is 404 `task not found` with the id for an unknown id, and for one that was deleted', async () => {
    await control.submit([noop('twice')])
    await control.ended('twice')
    await removed('twice')
    for (const id of ['twice', 'never-there']) {
      const response = await remove(id)
      expect(response.status).toBe(404)
      expect(response.headers.get('content-type')).toStartWith('application/json')
      expect(await response.json()).toEqual({ error: `task not found: ${id}` })
    }
  })
})

describe('a pending task', () => {
  test('never runs; its dependents are skipped, and theirs', async () => {
    await control.submit([
      gate.task('first'),
      { id: 'unwanted', type: 'http', params: { url: `${gate.url}unwanted` }, depends_on: ['first'] },
      noop('child', 'unwanted'),
      noop('grandchild', 'child'),
      noop('sibling', 'first'),
    ])
    await control.reached('first', 'running')
    await removed('unwanted')
    expect(await control.ended('child')).toMatchObject({ status: 'skipped', error: 'dependency unwanted deleted' })
    expect(await control.ended('grandchild')).toMatchObject({ status: 'skipped', error: 'dependency child skipped' })
    gate.open()
    expect((await control.ended('sibling')).status).toBe('success')
    expect(gate.arrivals).toBe(1)
  })

  test('that was ready and waited for a slot never runs', async () => {
    await using single = await startControl({ flags: ['--max-concurrency', '1'] })
    await single.submit([gate.task('slot'), gate.task('ready'), noop('after', 'ready'), noop('last')])
    await single.reached('slot', 'running')
    await removed('ready', single)
    expect(await single.ended('after')).toMatchObject({ status: 'skipped', error: 'dependency ready deleted' })
    gate.open()
    expect((await single.ended('last')).status).toBe('success')
    expect(gate.arrivals).toBe(1)
  })

  test('frees its id', async () => {
    await control.submit([gate.task('holder'), noop('again', 'holder')])
    await control.reached('holder', 'running')
    await removed('again')
    expect((await control.submit([noop('again')])).accepted).toBe(1)
    expect((await control.ended('again')).status).toBe('success')
    gate.open()
    await control.ended('holder')
  })
})

describe('a running task', () => {
  test('its process goes on', async () => {
    using temp = tempDir()
    const script = 'echo $$ > pid; while [ ! -e end ]; do sleep 0.01; done; touch ended'
    await control.submit([{ id: 'process', type: 'shell', params: { script, dir: temp.path } }])
    const pidFile = join(temp.path, 'pid')
    await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'))
    await removed('process')
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(await isAlive(pid)).toBe(true)
    writeFileSync(join(temp.path, 'end'), '')
    await until(() => isAlive(pid), false)
    expect(existsSync(join(temp.path, 'ended'))).toBe(true)
  })

  test('its outcome is dropped, but still releases its dependents', async () => {
    await control.submit([gate.task('hidden'), noop('released', 'hidden')])
    await control.reached('hidden', 'running')
    await removed('hidden')
    expect((await control.get('released')).status).toBe('pending')
    gate.open()
    expect((await control.ended('released')).status).toBe('success')
    expect((await control.fetch('/tasks/hidden')).status).toBe(404)
  })

  test('if it fails, its dependents are skipped as usual', async () => {
    await control.submit([gate.task('hidden-failure'), noop('skipped', 'hidden-failure')])
    await control.reached('hidden-failure', 'running')
    await removed('hidden-failure')
    gate.open(500)
    expect(await control.ended('skipped')).toMatchObject({
      status: 'skipped',
      error: 'dependency hidden-failure failed',
    })
    expect((await control.fetch('/tasks/hidden-failure')).status).toBe(404)
  })

  test('its id is taken until it ended (409)', async () => {
    await control.submit([gate.task('taken'), noop('witness', 'taken')])
    await control.reached('taken', 'running')
    await removed('taken')
    const response = await control.post({ tasks: [noop('taken')] })
    expect(response.status).toBe(409)
    expect(await response.json()).toEqual({ error: expect.stringContaining('task already active: taken (in graph ') })
    gate.open()
    await control.ended('witness')
    expect((await control.submit([noop('taken')])).accepted).toBe(1)
    expect((await control.ended('taken')).status).toBe('success')
  })

  test('stays in tasks_running until it ended', async () => {
    await using fresh = await startControl()
    await fresh.submit([gate.task('counted'), noop('then', 'counted')])
    await fresh.reached('counted', 'running')
    await removed('counted', fresh)
    expect((await fresh.metrics()).tasks_running).toBe(1)
    gate.open()
    await fresh.ended('then')
    expect((await fresh.metrics()).tasks_running).toBe(0)
  })
})

describe('a terminal task', () => {
  test('that succeeded still counts as such for its dependents', async () => {
    await control.submit([noop('done'), gate.task('busy'), noop('of-both', 'done', 'busy')])
    await control.ended('done')
    await control.reached('busy', 'running')
    await removed('done')
    gate.open()
    expect((await control.ended('of-both')).status).toBe('success')
  })

  test('its id may be used again, and is deleted again', async () => {
    for (const message of ['one', 'two']) {
      await control.submit([{ id: 'reused', type: 'noop', params: { message } }])
      expect((await control.ended('reused')).result).toMatchObject({ message })
      await removed('reused')
    }
  })
})

describe('over a restart', () => {
  /** Ends what runs at once, so that it runs again after the restart. */
  const flags = ['--shutdown-timeout', '0s']

  test('a deleted success still releases its dependents, as if there had been no restart', async () => {
    using temp = tempDir()
    const options = { dataDir: join(temp.path, 'data'), flags }
    await using before = await startControl(options)
    await before.submit([noop('won'), gate.task('open'), noop('heir', 'won', 'open')])
    await before.ended('won')
    await before.reached('open', 'running')
    await removed('won', before)
    expect(await before.stop()).toBe(0)

    gate.open()
    await using after = await startControl(options)
    expect(await after.ended('heir')).toMatchObject({ status: 'success' })
    expect((await after.fetch('/tasks/won')).status).toBe(404)
  })

  test('a replaced success still releases the dependents of its graph', async () => {
    using temp = tempDir()
    const options = { dataDir: join(temp.path, 'data'), flags }
    await using before = await startControl(options)
    await before.submit([noop('won'), gate.task('open'), noop('heir', 'won', 'open')])
    await before.ended('won')
    await before.reached('open', 'running')
    await before.submit([{ id: 'won', type: 'os', tool_name: 'no-such-tool' }])
    expect((await before.ended('won')).status).toBe('failed')
    expect(await before.stop()).toBe(0)

    gate.open()
    await using after = await startControl(options)
    expect(await after.ended('heir')).toMatchObject({ status: 'success' })
    expect((await after.get('won')).status).toBe('failed')
  })

  test('a deleted task that was running does not run again', async () => {
    using temp = tempDir()
    const options = { dataDir: join(temp.path, 'data'), flags }
    await using before = await startControl(options)
    await before.submit([gate.task('forgotten'), noop('bystander')])
    await before.ended('bystander')
    await before.reached('forgotten', 'running')
    await until(() => gate.arrivals, 1)
    await removed('forgotten', before)
    expect(await before.stop()).toBe(0)

    await using after = await startControl(options)
    expect((await after.list()).map((task) => task.id)).toEqual(['bystander'])
    await after.run({ type: 'noop' })
    expect(gate.arrivals).toBe(1)
  })
})
