/** `taskmill approve` and `reject`, and what `run` says of a task that waits for them. Source: docs/client.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { builtProgram } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
const client = (args: readonly string[], stdin?: string) => runClient(args, { url: control.url, stdin })

beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const asked = (path: string) =>
  until(
    async () => (await (await control.fetch(path)).json()) as { waiting?: { reason: string } },
    ({ waiting }) => waiting?.reason === 'approval',
  )

test('approve answers in the name of the user, reject with a name and a reason', async () => {
  const { graph_id } = await control.submit([
    { id: 'a', type: 'approval', params: { message: 'Go?' } },
    { id: 'b', type: 'approval' },
  ])
  for (const id of ['a', 'b']) await asked(`/tasks/${id}`)
  const table = (await client(['graph', graph_id, '-o', 'table'])).stdout
  expect(table).toMatch(/^a +pending .* waits for approval: Go\?$/m)
  expect((await client(['get', 'b', '-o', 'table'])).stdout).toMatch(/^waiting +waits for approval$/m)

  const unnamed = await runClient(['approve', 'a'], { url: control.url, env: { USER: '', LOGNAME: '' } })
  expect([unnamed.exitCode, unnamed.envelope.error?.message]).toEqual([
    2,
    'USER and LOGNAME are not set: say with --who NAME who answers',
  ])
  const approved = await runClient(['approve', 'a'], { url: control.url, env: { USER: '', LOGNAME: 'grace' } })
  expect(approved.exitCode).toBe(0)
  expect(approved.envelope.data).toMatchObject({
    ...{ id: 'a', status: 'success' },
    result: { approved: true, who: 'grace' },
  })
  const rejected = await client(['reject', `${graph_id}/b`, '--who', 'Ada L.', '--why', 'not today'])
  expect(rejected.envelope.data).toMatchObject({ status: 'failed', error: 'rejected by Ada L.: not today' })
  expect((await client(['reject', 'b', '--who', 'Ada L.', '--why', 'not today'])).exitCode).toBe(0)
  const other = await client(['approve', 'b', '--who', 'eve'])
  expect([other.exitCode, other.envelope.error?.status_code]).toEqual([1, 409])
})

test('both refuse what is no task', async () => {
  expect((await client(['approve'])).exitCode).toBe(2)
  expect((await client(['approve', 'a', 'b'])).exitCode).toBe(2)
  expect((await client(['reject', 'nobody', '--who', 'eve'])).envelope.error?.status_code).toBe(404)
})

test('run shows what is to be decided, and the command that answers', async () => {
  const tasks = [
    { id: 'plan', type: 'noop', params: { message: 'first this\nthen \u001b[31mthat' } },
    {
      id: "it's $HOME",
      type: 'approval',
      depends_on: ['plan'],
      params: { message: { $from: 'plan', path: '/result/message' } },
    },
  ]
  const child = Bun.spawn([await builtProgram('taskmill'), 'run'], {
    env: testEnvironment({ SERVICE_URL: control.url }),
    stdin: new TextEncoder().encode(JSON.stringify({ tasks })),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let said = ''
  const reading = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) said += chunk
  })()
  const command = /To approve: (.+) \(or reject\)$/m
  await until(
    () => said,
    (text) => command.test(text),
  )
  expect(said).toMatch(/it's \$HOME: waits for approval: first this.*then .*that$/m)
  expect(said).not.toContain('\u001b')
  // The command is as a shell takes it.
  const env = testEnvironment({ USER: 'grace' })
  const answer = Bun.spawn(['sh', '-c', `${command.exec(said)![1]} --why 'as it should be'`], { env, stdout: 'pipe' })
  expect(await answer.exited).toBe(0)
  expect(await child.exited).toBe(0)
  await reading
  const { data } = JSON.parse(await new Response(child.stdout).text())
  expect(data.tasks.map(({ status }: { status: string }) => status)).toEqual(['success', 'success'])
})

describe('wait', () => {
  test('returns once only approvals can let the tasks go on, and says which and what to do', async () => {
    using gate = new Gate()
    const { graph_id } = await control.submit([
      gate.task('build'),
      { id: "it's", type: 'approval', depends_on: ['build'] },
      { id: 'also', type: 'approval' },
      { id: 'deploy', type: 'noop', depends_on: ["it's", 'also'] },
    ])
    await asked('/tasks/also')
    const waiting = client(['wait', graph_id, '--timeout', '10m'])
    gate.open()
    const { exitCode, envelope } = await waiting
    const approvals = [`${graph_id}/it's`, `${graph_id}/also`]
    expect({ exitCode, data: envelope.data }).toMatchObject({
      exitCode: 3,
      data: {
        all_terminal: false,
        approvals,
        try_next: [`taskmill approve '${graph_id}/it'\\''s'`, `taskmill wait ${graph_id}`],
      },
    })
    for (const id of approvals) expect((await client(['approve', id, '--who', 'ada'])).exitCode).toBe(0)
    const ended = await client(['wait', graph_id])
    expect([ended.exitCode, ended.envelope.data?.all_terminal]).toEqual([0, true])
    expect(ended.envelope.data).not.toHaveProperty('approvals')
  })

  test('of a task behind an approval does not wait for others of its graph, of several tasks for all', async () => {
    using gate = new Gate()
    await control.submit([
      gate.task('long'),
      { id: 'ask', type: 'approval' },
      { id: 'behind', type: 'noop', depends_on: ['ask'] },
    ])
    const { envelope } = await client(['wait', 'behind', '--timeout', '10m'])
    expect(envelope.data).toMatchObject({ tasks: [{ id: 'behind', status: 'pending' }], all_terminal: false })
    expect(envelope.data?.approvals).toEqual([expect.stringMatching(/\/ask$/)])
    const both = await client(['wait', 'behind', 'long', '--timeout', '300ms'])
    expect(both.exitCode).toBe(3)
    expect(both.envelope.data).not.toHaveProperty('approvals')
  })

  test('of a service that does not know the parameter waits for the end', async () => {
    const asks: string[] = []
    using server = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1' },
      fetch(request) {
        asks.push(new URL(request.url).search)
        if (asks.at(-1)!.includes('wait_for'))
          return Response.json({ error: 'unknown query parameter' }, { status: 400 })
        return Response.json({ id: 'a', status: asks.length > 2 ? 'success' : 'running' })
      },
    })
    const { exitCode } = await runClient(['wait', 'a'], { url: `http://127.0.0.1:${server.port}` })
    expect({ exitCode, asks: asks.slice(0, 2) }).toEqual({ exitCode: 0, asks: ['?wait_for=approval', ''] })
  })
})
