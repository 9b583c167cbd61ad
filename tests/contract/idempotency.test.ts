/** `Idempotency-Key` of POST /tasks: against the built service, across kills. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const graph = (id: string) => ({ tasks: [{ id, type: 'noop' }] })

async function post(control: Control, key: string, body: unknown): Promise<{ status: number; text: string }> {
  const response = await control.post(body, { 'idempotency-key': key })
  return { status: response.status, text: await response.text() }
}

test('same key, same body: the first answer again, and the graph runs once', async () => {
  await using control = await startControl()
  const first = await post(control, 'one', graph('a'))
  expect(first.status).toBe(202)
  await control.ended('a')
  expect(await post(control, 'one', graph('a'))).toEqual(first)
  expect((await control.metrics()).tasks_total).toBe(1)
})

test('also while it is still being made', async () => {
  await using control = await startControl()
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(control, 'one', graph('a'))))
  expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
  expect(answers.every(({ status }) => status === 202)).toBe(true)
  expect((await control.metrics()).tasks_total).toBe(1)
})

test('other body: 422', async () => {
  await post(control, 'other', graph('first'))
  expect(await post(control, 'other', graph('second'))).toEqual({
    status: 422,
    text: JSON.stringify({ error: 'idempotency key reused with a different body' }),
  })
})

test('POST /adapters/actions has keys of its own, and gives its own answer again', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '1h'] }
  const act = async (control: Control, message: string) => {
    const body = JSON.stringify({ action: { kind: 'noop', input: { message } } })
    const headers = { 'idempotency-key': 'one' }
    const response = await control.fetch('/adapters/actions', { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  let first: { status: number; text: string }
  {
    await using control = await startControl(options)
    await post(control, 'one', graph('a'))
    first = await act(control, 'hello')
    expect(first).toMatchObject({ status: 202, text: expect.stringMatching(/"translation_trace":/) })
    expect(await act(control, 'hello')).toEqual(first)
    expect((await act(control, 'other')).status).toBe(422)
    await control.stop('SIGKILL')
  }
  await using control = await startControl(options)
  expect(await act(control, 'hello')).toEqual(first)
})

test('more than 255 characters: 400', async () => {
  expect((await post(control, 'k'.repeat(256), graph('long'))).status).toBe(400)
  expect((await post(control, 'k'.repeat(255), graph('long'))).status).toBe(202)
})

test('only for 202s: a refusal frees the key', async () => {
  expect((await post(control, 'freed', { tasks: [] })).status).toBe(400)
  expect((await post(control, 'freed', graph('freed'))).status).toBe(202)
})

test.each([
  ['by SIGKILL, from the journal', ['--persist-interval', '1h'], 'SIGKILL'],
  ['by SIGTERM, from its file', ['--persist-interval', '1h'], 'SIGTERM'],
] as const)('the answer survives an end %s', async (_, flags, signal) => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), flags }
  let first: { status: number; text: string }
  {
    await using control = await startControl(options)
    first = await post(control, 'one', graph('a'))
    await control.ended('a')
    await control.stop(signal)
  }
  for (let restart = 0; restart < 2; restart++) {
    await using control = await startControl(options)
    expect(await post(control, 'one', graph('a'))).toEqual(first)
    expect((await post(control, 'one', graph('b'))).status).toBe(422)
    expect((await control.metrics()).tasks_total).toBe(0)
    await control.stop()
  }
})
