/** Approvals through `POST /mcp`: a host that can ask the user does, for others the model passes on the answer. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient, ERAS } from '../support/mcp-client.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const approval = (id: string, message?: string) => ({
  ...{ id, type: 'approval' },
  ...(message !== undefined && { params: { message } }),
})

const asked = (path: string): Promise<TaskRecord> =>
  until(
    async () => (await (await control.fetch(path)).json()) as TaskRecord,
    ({ waiting }) => waiting?.reason === 'approval',
  )

type Elicited = { message: string; requestedSchema?: { required?: string[]; properties?: object } }
type Reply = { action: 'accept'; content: Record<string, string> } | { action: 'decline' | 'cancel' }

/** A host with a user who gives these replies, one after the other. */
async function hostWith(replies: Reply[]) {
  const questions: Elicited[] = []
  const mcp = await connectClient(control.url, 'auto', {}, (params) => {
    questions.push(params as Elicited)
    return replies.shift() ?? { action: 'cancel' }
  })
  return { mcp, questions }
}

describe.each(ERAS)('a host that cannot ask, era %s', (era) => {
  test('is told that a task waits, and passes on what the user has decided', async () => {
    await using mcp = await connectClient(control.url, era)
    const { data } = await mcp.call('submit_graph', {
      scope: 'graph',
      tasks: [approval('sure', 'Go?'), { id: 'next', type: 'noop', depends_on: ['sure'] }, approval('no')],
    })
    const { graph_id } = data
    await asked(`/graphs/${graph_id}/tasks/sure`)
    const next = async (timeout_ms: number) => (await mcp.call('wait', { graph_id, timeout_ms })).data.next
    expect(await next(0)).toContain(`task ${graph_id}/sure waits for an approval`)
    expect(await next(50_000)).toStartWith(
      `all that is left waits for approvals: ${graph_id}/sure ("Go?"), ${graph_id}/no. Ask the user, `,
    )
    const task = await mcp.call('get_task', { task_id: `${graph_id}/sure`, detail: true })
    expect(task.data.waiting).toEqual({ reason: 'approval', detail: 'Go?' })

    const answer = (args: object) => mcp.call('answer_approval', { task_id: `${graph_id}/sure`, ...args })
    for (const [args, error] of [
      [{}, 'invalid input: approved is required: ask the user'],
      [{ approved: true }, 'who is required: the name of whoever answers the approval'],
      [{ approved: 'yes', who: 'ada' }, 'invalid input: approved: expected boolean, got string'],
    ] as const) {
      const { isError, text } = await answer(args)
      expect([isError, text]).toEqual([true, error])
    }
    const given = await answer({ approved: true, who: 'ada', why: 'why not' })
    expect(given.data).toMatchObject({
      ...{ id: `${graph_id}/sure`, status: 'success' },
      result: { approved: true, who: 'ada', why: 'why not' },
    })
    expect((await answer({ approved: false, who: 'ada' })).text).toContain('was approved by ada at')
    const rejected = await mcp.call('answer_approval', { task_id: `${graph_id}/no`, approved: false, who: 'ada' })
    expect(rejected.data).toMatchObject({ status: 'failed', result: { approved: false, who: 'ada' } })
    expect((await mcp.call('wait', { graph_id })).data).toMatchObject({ counts: { success: 2, failed: 1 } })
  })
})

test('wait returns once only approvals can let the tasks go on, children among them, and says what to do', async () => {
  await using mcp = await connectClient(control.url, 'auto')
  using gate = new Gate()
  const { data } = await mcp.call('submit_graph', {
    scope: 'graph',
    tasks: [
      gate.task('build'),
      { ...approval('each', 'Go?'), for_each: ['x', 'y'], max_parallel: 1, depends_on: ['build'] },
      { id: 'next', type: 'noop', depends_on: ['each'] },
    ],
  })
  const { graph_id } = data
  const wait = () => mcp.call('wait', { graph_id, timeout_ms: 50_000 })
  const waiting = wait()
  gate.open()
  for (const child of ['each[0]', 'each[1]']) {
    const { all_terminal, next } = (child === 'each[0]' ? await waiting : await wait()).data
    const task_id = `${graph_id}/${child}`
    expect({ all_terminal, next }).toEqual({
      all_terminal: false,
      next: `all that is left waits for approvals: ${task_id} ("Go?"). Ask the user, then call answer_approval with {"task_id": "${task_id}", "approved": true or false, "who": the name of the user}, then wait again with the same ids`,
    })
    await mcp.call('answer_approval', { task_id, approved: true, who: 'ada' })
  }
  expect((await wait()).data).toMatchObject({ all_terminal: true, counts: { success: 5 } })
})

describe('a host that can ask', () => {
  test('asks the user while it waits, and waits on with the answer', async () => {
    const { mcp, questions } = await hostWith([
      { action: 'accept', content: { decision: 'approve', who: 'ada' } },
      { action: 'accept', content: { decision: 'reject', who: 'ada', why: 'no' } },
    ])
    await using _ = mcp
    await control.submit([
      { id: 'plan', type: 'sleep', params: { duration_ms: 300 } },
      { ...approval('sure', 'a long\nmessage'), depends_on: ['plan'] },
      { ...approval('__proto__'), depends_on: ['plan'] },
      { id: 'next', type: 'noop', depends_on: ['sure'] },
    ])
    // The first question may come before the other task is asked for; then that one is left for the next call.
    const { data } = await until(
      () => mcp.call('wait', { task_ids: ['sure', '__proto__', 'next'], timeout_ms: 2_000 }),
      (answer) => answer.data.all_terminal,
    )
    expect(data).toMatchObject({ all_terminal: true, counts: { success: 2, failed: 1 } })
    expect(questions[0]).toMatchObject({
      message: 'Task sure waits for an approval:\na long\nmessage',
      requestedSchema: {
        required: ['decision', 'who'],
        properties: { decision: { type: 'string', enum: ['approve', 'reject'] } },
      },
    })
    expect(questions[1]!.message).toBe('Task __proto__ waits for an approval.')
    expect((await control.get('__proto__')).error).toBe('rejected by ada: no')
  })

  test('decides nothing by closing the dialog, and asks again at the next call', async () => {
    const { mcp, questions } = await hostWith([
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { decision: 'maybe', who: 'ada' } },
      { action: 'accept', content: { decision: 'approve', who: '' } },
      { action: 'accept', content: { decision: 'approve', who: 'ada' } },
    ])
    await using _ = mcp
    await control.submit([approval('sure')])
    await asked('/tasks/sure')
    const waited = await mcp.call('wait', { task_ids: ['sure'], timeout_ms: 50 })
    expect(waited.data).toMatchObject({ all_terminal: false })
    // What the model says counts for nothing here.
    const answer = () => mcp.call('answer_approval', { task_id: 'sure', approved: true, who: 'model' })
    expect((await answer()).text).toBe('the user has not answered: the task still waits')
    expect((await answer()).text).toBe('the answer to the approval has no decision: expected approve or reject')
    expect((await answer()).text).toContain('who: expected string of 1 to 200 characters')
    expect((await control.get('sure')).status).toBe('pending')
    expect((await answer()).data).toMatchObject({ status: 'success', result: { approved: true, who: 'ada' } })
    expect(questions).toHaveLength(5)
    expect((await answer()).text).toContain('task sure was approved by ada at ')
    expect(questions).toHaveLength(5)
  })

  test('asks nobody about tasks that cannot be answered, nor in a call that does not wait', async () => {
    const { mcp, questions } = await hostWith([])
    await using _ = mcp
    await control.submit([
      { id: 'long', type: 'sleep', params: { duration_ms: 600_000 } },
      { ...approval('later'), depends_on: ['long'] },
      approval('unasked'),
    ])
    await asked('/tasks/unasked')
    expect((await mcp.call('answer_approval', { task_id: 'later' })).text).toBe(
      'task later cannot be answered yet: it depends on long',
    )
    expect((await mcp.call('answer_approval', { task_id: 'long' })).text).toBe(
      'task long is no approval: its type is os',
    )
    expect((await mcp.call('wait', { task_ids: ['unasked'], timeout_ms: 0 })).data.all_terminal).toBe(false)
    expect(questions).toEqual([])
  })
})
