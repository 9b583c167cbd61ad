/** `get_logs` of a task of type runtime that still runs: what it has written so far. Against the built services. */
import { expect, test } from 'bun:test'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'

test('get_logs shows the output of a running runtime task, page by page, and all of it when it has ended', async () => {
  await using pair = await startPair()
  await using mcp = await connectClient(pair.control.url)
  await pair.script('a', `echo one; echo two >&2; ${waitFor(pair.file('go'))}; echo three`)
  await pair.there('a', ({ stdout, stderr }) => stdout === 'one\n' && stderr === 'two\n')
  const logs = async (more: object = {}) => (await mcp.call('get_logs', { task_id: 'a', ...more })).data
  expect(await logs()).toMatchObject({
    ...{ task_id: 'a', status: 'running', stream: 'stdout', text: 'one\n', total_characters: 4 },
    ...{ streams: ['stdout', 'stderr', 'result'], next: expect.stringContaining('so far') },
  })
  expect(await logs({ stream: 'stderr', limit: 1 })).toMatchObject({ text: 't', next_offset: 1 })
  expect(await logs({ offset: 4 })).toMatchObject({ offset: 4, text: '' })

  await Bun.write(pair.file('go'), '')
  await pair.ended('a')
  const ended = await logs({ offset: 4 })
  expect(ended).toMatchObject({ status: 'success', text: 'three\n', total_characters: 10 })
  expect(ended).not.toHaveProperty('next')
})

test('get_logs says so when the runtime service does not answer, and that a task has not begun', async () => {
  await using pair = await startPair()
  await using mcp = await connectClient(pair.control.url)
  await pair.script('a', 'echo one; sleep 600')
  await pair.running('a')
  await pair.control.submit([
    { id: 'gate', type: 'sleep', params: { duration_ms: 600_000 } },
    { id: 'later', type: 'runtime.script', params: { script: 'echo' }, depends_on: ['gate'] },
  ])
  expect((await mcp.call('get_logs', { task_id: 'later' })).data).toMatchObject({
    ...{ status: 'pending', text: '', streams: [], next: 'call wait: there is no output yet' },
  })
  await pair.stopRuntime('SIGKILL')
  const away = await mcp.call('get_logs', { task_id: 'a' })
  expect(away.isError).toBe(true)
  expect(away.text).toMatch(/cannot read the output so far: cannot reach the runtime service .* the task still runs/)
})
