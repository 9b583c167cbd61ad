/** `POST /mcp`: the service as an MCP server, with the official SDK's own client, in both eras of the protocol. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Control, startControl } from '../support/control.ts'
import { oddServer, startMcpControl } from '../support/mcp.ts'
import { connectClient, ERAS } from '../support/mcp-client.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const NAMES = [
  ...['submit_graph', 'run_action', 'rerun_graph', 'wait', 'get_task', 'list_tasks', 'get_graph', 'list_graphs'],
  ...['get_logs', 'get_task_file', 'answer_approval', 'cancel', 'capabilities'],
]

/** Models read the list in every conversation. */
const MAX_LIST_BYTES = 20_000

const sleep = (id: string, ms = 600_000) => ({ id, type: 'sleep', params: { duration_ms: ms } })

describe.each(ERAS)('era %s', (era) => {
  test('the thirteen tools are listed with real schemas', async () => {
    await using mcp = await connectClient(control.url, era)
    expect(mcp.client.getNegotiatedProtocolVersion()).toBe(era === 'legacy' ? '2025-11-25' : '2026-07-28')
    expect(mcp.client.getServerVersion()?.name).toBe('taskmill')
    expect(mcp.client.getInstructions()).toContain('run_action')
    const { tools } = await mcp.client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(NAMES)
    for (const { description, inputSchema, outputSchema, annotations } of tools) {
      expect(description!.length).toBeGreaterThan(40)
      expect([inputSchema.type, outputSchema?.type]).toEqual(['object', 'object'])
      expect(Object.keys(inputSchema.properties ?? {}).length).toBeGreaterThan(0)
      expect(JSON.stringify([inputSchema, outputSchema])).not.toContain('"expected"')
      expect(typeof annotations?.readOnlyHint).toBe('boolean')
    }
    expect(Buffer.byteLength(JSON.stringify(tools))).toBeLessThan(MAX_LIST_BYTES)
  })

  test('submit_graph, wait, get_task, get_logs, cancel: a graph from its beginning to its end', async () => {
    const [a, b, long, after] = ['a', 'b', 'long', 'after'].map((id) => `${id}-${era}`) as [
      string,
      string,
      string,
      string,
    ]
    await using mcp = await connectClient(control.url, era)
    const submitted = await mcp.call('submit_graph', {
      tasks: [
        { id: a, type: 'shell', params: { command: 'echo', args: ['one'] } },
        { id: b, type: 'noop', depends_on: [a] },
        sleep(long),
        { id: after, type: 'noop', depends_on: [long] },
      ],
    })
    expect(submitted.data).toMatchObject({ accepted: 4, task_ids: [a, b, long, after] })
    const { graph_id } = submitted.data
    const ended = await mcp.call('wait', { task_ids: [a, b] })
    expect(ended.data).toMatchObject({ all_terminal: true, counts: { success: 2 } })

    const short = await mcp.call('wait', { graph_id, timeout_ms: 50 })
    expect(short.data).toMatchObject({ all_terminal: false, counts: { success: 2, running: 1, pending: 1 } })
    expect(short.data.next).toContain('call wait again')
    expect((await mcp.call('wait', { graph_id, until: 'any' })).data.all_terminal).toBe(false)

    expect((await mcp.call('get_logs', { task_id: a })).data).toEqual({
      ...{ task_id: a, status: 'success', stream: 'stdout', streams: ['stdout', 'stderr', 'result'] },
      ...{ offset: 0, text: 'one\n', total_characters: 4 },
    })
    const task = (await mcp.call('get_task', { task_id: after, detail: true })).data
    expect(task).toMatchObject({ id: after, status: 'pending', tool: 'os/noop', graph_id, depends_on: [long] })

    const waiting = mcp.call('wait', { graph_id })
    expect((await mcp.call('cancel', { task_ids: [long] })).data).toEqual({
      tasks: [{ id: long, status: 'cancelling' }],
    })
    expect((await waiting).data).toMatchObject({ all_terminal: true, counts: { success: 2, cancelled: 1, skipped: 1 } })
    expect((await waiting).data.tasks[0]).toMatchObject({ id: long, status: 'cancelled', error_code: 'cancelled' })
  })

  test('a long wait reports progress, and one that is given up is let go of', async () => {
    const long = `waited-for-${era}`
    await using mcp = await connectClient(control.url, era)
    await control.submit([sleep(long)])
    const reports: { progress: number; message?: string | undefined }[] = []
    const giveUp = new AbortController()
    const waiting = mcp.call(
      'wait',
      { task_ids: [long], timeout_ms: 50_000 },
      { onprogress: (report) => reports.push(report), signal: giveUp.signal },
    )
    await until(
      () => reports.length,
      (count) => count >= 2,
    )
    expect(reports[1]!.progress).toBeGreaterThan(reports[0]!.progress)
    expect(reports[0]!.message).toBe('0 of 1 tasks have ended')
    giveUp.abort('enough')
    await expect(waiting).rejects.toThrow()
    expect((await mcp.call('get_task', { task_id: long, detail: true })).data.status).toBe('running')
  }, 30_000)
})

test('run_action runs one thing and answers with its result, structured and as the same text', async () => {
  await using mcp = await connectClient(control.url)
  const { data, text, isError } = await mcp.call('run_action', {
    kind: 'shell',
    input: { command: 'echo', args: ['hi'] },
    action_id: 'greet',
    metadata: { ticket: '7' },
  })
  expect(isError).toBe(false)
  expect(JSON.parse(text)).toEqual(data)
  expect(data).toMatchObject({ accepted: 1, task_ids: ['greet'], kind: 'os.shell', all_terminal: true })
  expect(data.tasks).toEqual([{ id: 'greet', status: 'success', output: 'hi' }])
  const whole = await mcp.call('wait', { task_ids: ['greet'], detail: true })
  expect(whole.data.tasks).toMatchObject([
    { id: 'greet', status: 'success', tool: 'os/shell', result: { stdout: 'hi\n' } },
  ])
  const { annotations } = await control.get('greet')
  expect(annotations).toMatchObject({ adapter: 'mcp', action_kind: 'os.shell', ticket: '7' })
})

test('what cannot be done is an answer that says so, and what to do', async () => {
  const before = await control.list()
  await using mcp = await connectClient(control.url)
  const failed = async (name: string, args: Record<string, unknown>) => {
    const { isError, text } = await mcp.call(name, args)
    expect(isError).toBe(true)
    return text
  }
  expect(await failed('submit_graph', {})).toBe('invalid input: tasks is required')
  for (const tool of ['list_tasks', 'wait', 'cancel'])
    expect(await failed(tool, { graph_id: '' })).toBe(
      'invalid input: graph_id: expected string that is not empty, got string',
    )
  expect(await failed('get_graph', { graph_id: '' })).toBe('invalid input: graph_id is required')
  expect(await failed('wait', { task_ids: [''] })).toContain('strings that are not empty')
  expect(await failed('submit_graph', { tasks: [] })).toBe('task graph is empty')
  expect(await failed('submit_graph', { tasks: 'x' })).toBe('invalid input: tasks: expected array of tasks, got string')
  expect(await failed('submit_graph', { tasks: [{ id: 'a', type: 'nope' }] })).toBe(
    'unknown task type: nope (available: approval, cli-skills, mcp, os, runtime, wait) or a short form: dns, file, http, noop, shell, sleep, tcp',
  )
  expect(await failed('submit_graph', { tasks: [{ id: 'a', type: 'noop', depends_on: ['b'] }] })).toBe(
    'task a depends on unknown task b',
  )
  expect(await failed('run_action', {})).toBe('invalid input: kind is required')
  expect(await failed('run_action', { kind: 'nope' })).toContain('unknown action kind "nope" (available: os.shell')
  expect(await failed('run_action', { kind: 'os.shell', input: {} })).toContain('input.command is required')
  expect(await failed('run_action', { kind: 'os.noop', wait_ms: 50_001 })).toBe(
    'invalid input: wait_ms: expected integer from 0 to 50000, got number',
  )
  expect(await failed('wait', {})).toBe('give either task_ids or graph_id')
  expect(await failed('wait', { task_ids: ['a'], graph_id: 'b' })).toBe('give either task_ids or graph_id')
  expect(await failed('wait', { task_ids: [] })).toBe('task_ids is empty')
  expect(await failed('wait', { task_ids: ['nobody'] })).toBe('task not found: nobody (list_tasks shows what there is)')
  expect(await failed('wait', { graph_id: 'none' })).toBe('graph not found: none (list_graphs shows what there is)')
  expect(await failed('get_task', { task_id: 'nobody' })).toContain('task not found: nobody')
  expect(await failed('get_logs', { task_id: 'nobody' })).toContain('task not found: nobody')
  expect(await failed('cancel', { task_ids: ['nobody'] })).toContain('task not found: nobody')
  expect(await failed('list_tasks', { cursor: 'x' })).toBe(
    'invalid input: cursor: expected next_cursor of an earlier answer',
  )
  expect(await failed('list_tasks', { status: 'asleep' })).toBe(
    'invalid input: status: expected one of pending, running, success, failed, skipped, cancelling, cancelled, got "asleep"',
  )
  expect(await failed('capabilities', { kind: 'nope' })).toContain('unknown action kind "nope"')
  await expect(mcp.call('no_such_tool')).rejects.toThrow(/unknown tool "no_such_tool" \(available: submit_graph/)
  expect(await control.list()).toHaveLength(before.length)
})

test('answers are in brief: outputs or their ends, what failed and why, and the next call', async () => {
  const line = 'x'.repeat(99)
  const shell = (id: string, script: string) => ({ id, type: 'shell', params: { command: 'sh', args: ['-c', script] } })
  const long = `i=0; while [ $i -lt 100 ]; do echo ${line}; i=$((i + 1)); done; echo end`
  await using open = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
  await using agent = await connectClient(open.url)
  const { data, text } = await agent.call('submit_graph', {
    scope: 'graph',
    tasks: [
      shell('short', 'echo hi'),
      shell('long', long),
      { id: 'plain', type: 'noop', params: { message: 'm' } },
      shell('bad', 'echo why >&2; exit 3'),
      { id: 'lost', type: 'noop', depends_on: ['bad'] },
      { id: 'sure', type: 'approval', params: { message: 'Go?' } },
    ],
    wait_ms: 20_000,
  })
  const { graph_id } = data
  const of = (id: string) => data.tasks.find((task: { id: string }) => task.id === `${graph_id}/${id}`)
  expect(of('short')).toEqual({ id: `${graph_id}/short`, status: 'success', output: 'hi' })
  expect(of('plain').output).toMatchObject({ message: 'm' })
  expect(of('long').output).toMatch(/^…x+\n[\s\S]*\nend$/)
  expect(of('long').next).toBe(`call get_logs with {"task_id": "${graph_id}/long"}`)
  expect(of('bad')).toEqual({
    ...{ id: `${graph_id}/bad`, status: 'failed', error: expect.any(String), error_code: 'exit_nonzero' },
    ...{ output: 'why', next: `call get_logs with {"task_id": "${graph_id}/bad"}` },
  })
  expect(data.next).toContain('answer_approval')
  expect(text.length).toBeLessThan(4_000)

  const graph = (await agent.call('get_graph', { graph_id })).data
  expect(graph).toMatchObject({ graph_id, state: 'running', counts: { success: 3, failed: 1, skipped: 1, pending: 1 } })
  expect(graph.root_cause).toMatchObject({ task_id: 'bad', code: 'exit_nonzero', tail: 'why', skipped: 1 })
  expect(graph.tasks).toEqual([
    { id: `${graph_id}/sure`, status: 'pending', waiting: 'approval: Go?' },
    { id: `${graph_id}/lost`, status: 'skipped', error: expect.any(String) },
  ])
  expect(graph.next).toContain(`answer_approval with {"task_id": "${graph_id}/sure"}`)

  const task = (await agent.call('get_task', { task_id: `${graph_id}/long` })).data
  expect(JSON.stringify(task).length).toBeLessThanOrEqual(2_000)
  expect(JSON.stringify(task).length).toBeGreaterThan(1_900)
  expect((await agent.call('list_graphs')).data.graphs).toEqual([{ graph_id, state: 'running', counts: graph.counts }])
})

test('null means absent, as everywhere', async () => {
  await using mcp = await connectClient(control.url)
  const { data } = await mcp.call('run_action', { kind: 'noop', input: null, wait_ms: null, tool_name: null })
  expect(data.tasks[0].status).toBe('success')
})

test('an idempotency_key makes a retry safe, and shares the keys of POST /tasks', async () => {
  await using mcp = await connectClient(control.url)
  const graph = { tasks: [{ id: 'once', type: 'noop' }] }
  const first = await mcp.call('submit_graph', { ...graph, idempotency_key: 'k' })
  const second = await mcp.call('submit_graph', { ...graph, idempotency_key: 'k' })
  expect(second.data).toEqual(first.data)
  const other = await mcp.call('submit_graph', { tasks: [{ id: 'else', type: 'noop' }], idempotency_key: 'k' })
  expect([other.isError, other.text]).toEqual([true, 'idempotency key reused with a different body'])
})

test('results are small, with a pointer to the rest', async () => {
  await using mcp = await startMcpControl({ odd: oddServer() })
  const { control } = mcp
  await using agent = await connectClient(control.url)
  const sizes = [100, 5_000, 20_000, 200_000]
  await control.submit(
    sizes.map((bytes) => ({ id: `big-${bytes}`, type: 'mcp', tool_name: 'odd/big', input: { bytes } })),
  )
  const ids = sizes.map((bytes) => `big-${bytes}`)
  const { data, text } = await agent.call('wait', { task_ids: ids, detail: true })
  const omitted = Object.fromEntries(
    data.tasks.map(({ id, result_omitted }: Record<string, string>) => [id, result_omitted]),
  )
  expect(omitted).toEqual({
    'big-100': undefined,
    'big-5000': undefined,
    'big-20000': 'call get_logs with {"task_id": "big-20000"}',
    'big-200000': 'call get_logs with {"task_id": "big-200000"}',
  })
  expect(text.length).toBeLessThan(10_000)
  expect(
    (await agent.call('get_task', { task_id: 'big-20000', detail: true })).data.result.content[0].text.length,
  ).toBe(20_000)
  expect((await agent.call('get_task', { task_id: 'big-200000', detail: true })).data.result).toBeUndefined()

  let read = ''
  let offset: number | undefined = 0
  while (offset !== undefined) {
    const page: { data: { text: string; next_offset?: number } } = await agent.call('get_logs', {
      ...{ task_id: 'big-200000', offset, limit: 20_000 },
    })
    read += page.data.text
    offset = page.data.next_offset
  }
  expect(read).toBe('x'.repeat(200_000))
  const tail = await agent.call('get_logs', { task_id: 'big-200000', stream: 'result', offset: -3 })
  expect([tail.data.text, tail.data.stream]).toEqual(['"}]}'.slice(-3), 'result'])
  const wrong = await agent.call('get_logs', { task_id: 'big-100', stream: 'stdout' })
  expect(wrong.text).toBe('task big-100 has no stream "stdout" (available: content, result)')
})

test('the output of a task that has not ended, or has none, is explained', async () => {
  await using mcp = await connectClient(control.url)
  await control.submit([sleep('long'), { id: 'refused', type: 'shell', params: { command: 'rm' } }])
  await control.ended('refused')
  expect((await mcp.call('get_logs', { task_id: 'long' })).data.next).toBe('call wait: there is no output yet')
  expect((await mcp.call('get_logs', { task_id: 'refused' })).data.next).toBe(
    'the task left no output; get_task says why',
  )
})

test('tasks are listed the newest first, by state and graph, a page at a time', async () => {
  await using control = await startControl()
  await using mcp = await connectClient(control.url)
  const graphs: string[] = []
  for (const letter of ['a', 'b', 'c']) {
    const tasks = [1, 2].map((n) => ({ id: `${letter}${n}`, type: 'noop' }))
    graphs.push((await control.submit(tasks)).graph_id)
  }
  await control.submit([sleep('long')])
  await control.reached('long', 'running')
  const ids = ({ data }: { data: { tasks: { id: string }[] } }) => data.tasks.map(({ id }) => id)
  expect(ids(await mcp.call('list_tasks'))).toEqual(['long', 'c2', 'c1', 'b2', 'b1', 'a2', 'a1'])
  expect(ids(await mcp.call('list_tasks', { status: 'running' }))).toEqual(['long'])
  const ofGraph = await mcp.call('list_tasks', { graph_id: graphs[1] })
  expect([ids(ofGraph), ofGraph.data.counts]).toEqual([['b2', 'b1'], { success: 2 }])
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await mcp.call('list_tasks', { limit: 3, ...(cursor !== undefined && { cursor }) })
    expect(page.data.counts).toEqual({ success: 6, running: 1 })
    pages.push(ids(page))
    cursor = page.data.next_cursor
  } while (cursor !== undefined)
  expect(pages).toEqual([['long', 'c2', 'c1'], ['b2', 'b1', 'a2'], ['a1']])
})

test('graphs are listed the newest first, by state, name and labels, a page at a time', async () => {
  await using control = await startControl()
  await using mcp = await connectClient(control.url)
  const submit = async (name: string, labels: object, type: string) => {
    const tasks = [{ id: name, type, tool_name: type === 'os' ? 'none' : undefined }]
    const { graph_id } = (await mcp.call('submit_graph', { tasks, name, labels, wait_ms: 30_000 })).data
    return graph_id as string
  }
  const [a, b, c] = [
    await submit('a', { team: 'web' }, 'noop'),
    await submit('b', { team: 'web' }, 'os'),
    await submit('c', {}, 'noop'),
  ]
  const listed = async (more: object = {}) => {
    const { data } = await mcp.call('list_graphs', { ...more })
    return { ids: data.graphs.map(({ graph_id }: { graph_id: string }) => graph_id), next: data.next_cursor }
  }
  expect((await listed()).ids).toEqual([c, b, a])
  expect((await listed({ state: 'failed' })).ids).toEqual([b])
  expect((await listed({ name: 'c' })).ids).toEqual([c])
  expect((await listed({ labels: { team: 'web' } })).ids).toEqual([b, a])
  const first = await listed({ limit: 2 })
  expect(first.ids).toEqual([c, b])
  expect(await listed({ limit: 2, cursor: first.next })).toEqual({ ids: [a], next: undefined })
  const wrong = await mcp.call('list_graphs', { cursor: 'x' })
  expect([wrong.isError, wrong.text]).toEqual([
    true,
    'invalid input: cursor: expected next_cursor of an earlier answer',
  ])
})

test('get_graph says why tasks wait, and why a graph failed', async () => {
  await using mcp = await connectClient(control.url)
  const { graph_id } = (
    await mcp.call('submit_graph', {
      scope: 'graph',
      tasks: [
        { id: 'ok', type: 'noop' },
        { id: 'bad', type: 'shell', params: { command: 'ls', args: ['not/there'] }, depends_on: ['ok'] },
        { id: 'lost', type: 'noop', depends_on: ['bad'] },
        sleep('long'),
        { id: 'after', type: 'noop', depends_on: ['long'] },
      ],
    })
  ).data
  const look = async () => (await mcp.call('get_graph', { graph_id, detail: true })).data
  const { tasks, root_cause, next, ...summary } = await until(look, ({ counts }) => counts.skipped === 1)
  expect(summary).toMatchObject({ graph_id, state: 'running', task_count: 5 })
  expect(tasks.map(({ id, waiting }: { id: string; waiting?: object }) => [id, waiting])).toEqual([
    ['bad', undefined],
    ['long', undefined],
    ['ok', undefined],
    ['after', { reason: 'dependencies', tasks: ['long'] }],
    ['lost', undefined],
  ])
  expect(root_cause).toMatchObject({ task_id: 'bad', code: 'exit_nonzero', skipped: 1 })
  expect(root_cause.tail).toContain('not/there')
  expect(next).toBe(`call get_logs with {"task_id": "${graph_id}/bad"}`)
  expect((await mcp.call('get_task', { task_id: `${graph_id}/after`, detail: true })).data.waiting.reason).toBe(
    'dependencies',
  )
  await mcp.call('cancel', { graph_id })
  expect((await mcp.call('wait', { graph_id })).data.all_terminal).toBe(true)
  expect((await look()).state).toBe('failed')
})

test('a large graph gives a short answer', async () => {
  await using mcp = await connectClient(control.url)
  const tasks = Array.from({ length: 5_000 }, (_, i) => ({ id: `t${i}`, type: i === 4_000 ? 'nonexistent' : 'noop' }))
  expect((await mcp.call('submit_graph', { tasks })).isError).toBe(true)
  tasks[4_000] = { id: 't4000', type: 'os', tool_name: 'none' } as (typeof tasks)[0]
  const { data, text } = await mcp.call('submit_graph', { tasks, wait_ms: 30_000, detail: true })
  expect(data).toMatchObject({ accepted: 5_000, counts: { success: 4_999, failed: 1 }, tasks_omitted: 4_900 })
  expect(data.task_ids.length).toBe(100)
  expect(data.tasks[0]).toMatchObject({ id: 't4000', status: 'failed' })
  expect(text.length).toBeLessThan(40_000)
  const look = await mcp.call('get_graph', { graph_id: data.graph_id, detail: true })
  expect(look.data).toMatchObject({ task_count: 5_000, tasks_omitted: 4_900, root_cause: { task_id: 't4000' } })
  expect(look.text.length).toBeLessThan(40_000)
  const cancelled = await mcp.call('cancel', { graph_id: data.graph_id })
  expect(cancelled.data).toEqual({ tasks: [] })
})

test('the output of a process of the runtime service is read like any other', async () => {
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  await using mcp = await connectClient(control.url)
  const { data } = await mcp.call('run_action', { kind: 'script', input: { script: 'echo out; echo err >&2' } })
  expect(data).toMatchObject({ kind: 'runtime.script', all_terminal: true, tasks: [{ status: 'success' }] })
  const task_id = data.task_ids[0]
  expect((await mcp.call('get_logs', { task_id })).data).toMatchObject({ stream: 'stdout', text: 'out\n' })
  expect((await mcp.call('get_logs', { task_id, stream: 'stderr' })).data.text).toBe('err\n')
})

test('capabilities say what there is, and the input of a kind', async () => {
  await using mcp = await startMcpControl({ odd: oddServer() })
  await using agent = await connectClient(mcp.control.url)
  const { data } = await agent.call('capabilities')
  expect(data.task_types).toEqual(['approval', 'cli-skills', 'mcp', 'os', 'runtime', 'wait'])
  expect(data.mcp_servers).toEqual(['builtin', 'odd'])
  expect(data.runtimes).toEqual([{ name: 'default', labels: {}, draining: false }])
  expect(data.limits.wait_ms).toBe(50_000)
  expect(data.action_kinds.map(({ kind }: { kind: string }) => kind)).toContain('mcp.call')
  const one = await agent.call('capabilities', { kind: 'bash' })
  expect(one.data.action_kinds).toMatchObject([{ kind: 'os.shell', input_schema: { properties: { command: {} } } }])
})

test('waits are answered when the service stops', async () => {
  const control = await startControl({ flags: ['--shutdown-timeout', '0s', '--kill-grace', '0s'] })
  await using mcp = await connectClient(control.url)
  await control.submit([sleep('long')])
  await control.reached('long', 'running')
  const waiting = mcp.call('wait', { task_ids: ['long'], timeout_ms: 50_000 })
  await until(
    () => mcp.call('get_task', { task_id: 'long', detail: true }),
    ({ data }) => data.status === 'running',
  )
  expect(await control.stop('SIGTERM')).toBe(0)
  expect((await waiting).data.tasks[0].status).toBe('pending')
  await control.dispose()
})

describe('sets of tools', () => {
  const withSets = (sets: string, { url } = control) =>
    connectClient(url, 'auto', {}, undefined, `/mcp?toolsets=${sets}`)
  const namesIn = async (sets: string) => {
    await using mcp = await withSets(sets)
    return (await mcp.client.listTools()).tools.map(({ name }) => name)
  }

  test('the address chooses them; without it, the setting', async () => {
    const [schedules, live] = [['list_schedules', 'put_schedule', 'change_schedule'], ['signal_task']]
    expect(await namesIn('schedules')).toEqual(schedules)
    expect((await namesIn('live')).slice(0, 1)).toEqual(live)
    expect(await namesIn('schedules,graphs')).toEqual([...NAMES, ...schedules])
    expect(await namesIn('schedules&toolsets=graphs')).toEqual([...NAMES, ...schedules])
    const all = await namesIn('all')
    expect(all).toEqual(expect.arrayContaining([...NAMES, ...schedules, ...live]))
    await using other = await startControl({ flags: ['--mcp-toolsets', 'schedules'] })
    await using mcp = await connectClient(other.url)
    expect((await mcp.client.listTools()).tools.map(({ name }) => name)).toEqual(schedules)
  })

  test('an unknown one is refused with the known ones', async () => {
    const accept = 'application/json, text/event-stream'
    const headers = { 'content-type': 'application/json', accept }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list' })
    const response = await control.fetch('/mcp?toolsets=graphs,none', { method: 'POST', headers, body })
    expect([response.status, await response.json()]).toEqual([
      400,
      {
        ...{ jsonrpc: '2.0', id: 7 },
        error: {
          code: -32602,
          message: 'unknown set of tools "none": expected graphs, schedules, live, all, with commas between them',
        },
      },
    ])
    await expect(withSets('none')).rejects.toThrow('unknown set of tools')
  })

  test('a tool of another set is not called, and the error names its set', async () => {
    await using mcp = await connectClient(control.url)
    await expect(mcp.call('list_schedules')).rejects.toThrow(
      /it is in the set schedules: connect to \/mcp\?toolsets=graphs,schedules\)/,
    )
  })

  test('schedules are put, listed, triggered, paused, resumed and deleted', async () => {
    await using mcp = await withSets('graphs,schedules')
    const graph = { tasks: [{ id: 'a', type: 'noop' }] }
    const dry = await mcp.call('put_schedule', { name: 'nightly', cron: '0 3 * * *', graph, dry_run: true })
    expect(dry.data).toMatchObject({ name: 'nightly', created: false })
    expect(dry.data.next).toHaveLength(5)
    expect((await mcp.call('list_schedules')).data).toEqual({ schedules: [] })
    const put = await mcp.call('put_schedule', { name: 'nightly', cron: '0 3 * * *', graph })
    expect(put.data).toEqual({ ...dry.data, created: true })
    expect((await mcp.call('put_schedule', { name: 'nightly', every: 3_600_000, graph })).data.created).toBe(false)
    const { graph_id } = (await mcp.call('change_schedule', { name: 'nightly', verb: 'trigger' })).data
    expect((await mcp.call('wait', { graph_id })).data).toMatchObject({ all_terminal: true, counts: { success: 1 } })
    const { schedules } = (await mcp.call('list_schedules', { name: 'nightly' })).data
    expect(schedules).toMatchObject([{ name: 'nightly', every: 3_600_000, graph, runs: [{ graph_id }] }])
    const paused = await mcp.call('change_schedule', { name: 'nightly', verb: 'pause' })
    expect(paused.data).toEqual({ name: 'nightly', next: [] })
    expect((await mcp.call('change_schedule', { name: 'nightly', verb: 'resume' })).data.next).toHaveLength(5)
    expect((await mcp.call('list_schedules', { after: 'nightly' })).data).toEqual({ schedules: [] })
    expect((await mcp.call('change_schedule', { name: 'nightly', verb: 'delete' })).data).toEqual({ name: 'nightly' })
    const gone = await mcp.call('list_schedules', { name: 'nightly' })
    expect([gone.isError, gone.text]).toEqual([true, 'schedule not found: nightly'])
    const faulty = await mcp.call('put_schedule', { name: 'nightly', cron: '99 3 * * *', graph })
    expect([faulty.isError, faulty.text]).toEqual([true, expect.stringContaining('cron')])
  })

  test('a failed task is retried in place, and all of its graph', async () => {
    await using mcp = await withSets('graphs,live')
    const tasks = [
      { id: 'f', type: 'shell', params: { command: 'false' } },
      { id: 'n', type: 'noop', depends_on: ['f'] },
    ]
    const { graph_id } = (await mcp.call('submit_graph', { scope: 'graph', tasks })).data
    const task_id = `${graph_id}/f`
    for (const named of [{ task_id }, { graph_id }]) {
      expect((await mcp.call('wait', { graph_id })).data).toMatchObject({ counts: { failed: 1, skipped: 1 } })
      const once = { ...named, revision: 0, idempotency_key: 'k' }
      for (let i = 0; i < 2; i++)
        expect((await mcp.call('retry_task', once)).data).toEqual({ graph_id, retried: [task_id], pending: 2 })
    }
    await mcp.call('wait', { graph_id })
    expect((await mcp.call('get_task', { task_id, detail: true })).data.attempt).toBe(3)
    expect((await mcp.call('retry_task', { graph_id, revision: 7 })).text).toContain('has the revision 0 by now')
    const both = await mcp.call('retry_task', { task_id, graph_id })
    expect([both.isError, both.text]).toEqual([true, 'invalid input: give either task_id or graph_id'])
    const skipped = await mcp.call('retry_task', { task_id: `${graph_id}/n` })
    expect([skipped.isError, skipped.text]).toEqual([true, expect.stringContaining('retry the task that failed')])
  })

  test('a graph that runs gets other tasks', async () => {
    await using mcp = await withSets('graphs,live')
    const later = { type: 'noop', depends_on: ['w'] }
    const tasks = [
      { id: 'w', type: 'wait', params: { signal: true } },
      { id: 'gone', ...later },
      { id: 'kept', ...later },
    ]
    const { graph_id } = (await mcp.call('submit_graph', { scope: 'graph', tasks })).data
    const at = (id: string) => `${graph_id}/${id}`
    const patch = { graph_id, revision: 0, add: [{ id: 'n', ...later }], remove: [at('gone')] }
    const change = { [at('kept')]: { priority: 1, timeout: null } }
    const said = { graph_id, revision: 1, added: [at('n')], removed: [at('gone')], replaced: [at('kept')] }
    const dry = await mcp.call('patch_graph', { ...patch, change, dry_run: true })
    expect(dry.data).toEqual({ ...said, waves: [['w'], ['kept', 'n']] })
    expect((await mcp.call('patch_graph', { ...patch, change })).data).toEqual(said)
    const late = await mcp.call('patch_graph', patch)
    expect([late.isError, late.text]).toEqual([true, expect.stringContaining('has the revision 1 by now')])
    const faulty = await mcp.call('patch_graph', { graph_id, add: ['n'] })
    expect([faulty.isError, faulty.text]).toEqual([true, expect.stringContaining('invalid input: add[0]')])
    await mcp.call('signal_task', { task_id: at('w') })
    expect((await mcp.call('wait', { graph_id })).data).toMatchObject({ counts: { success: 3 } })
  })

  test('a wait gets its signal', async () => {
    await using mcp = await withSets('graphs,live')
    const { graph_id } = (
      await mcp.call('submit_graph', { scope: 'graph', tasks: [{ id: 'w', type: 'wait', params: { signal: true } }] })
    ).data
    const task_id = `${graph_id}/w`
    await until(
      () => mcp.call('get_task', { task_id, detail: true }),
      ({ data }) => data.waiting?.reason === 'signal',
    )
    const large = await mcp.call('signal_task', { task_id, value: 'x'.repeat(65_536) })
    expect([large.isError, large.text]).toEqual([true, expect.stringContaining('value: more than 65536 bytes')])
    const signalled = await mcp.call('signal_task', { task_id, value: { build: 42 } })
    expect(signalled.data).toEqual({ id: task_id, status: 'success' })
    expect((await mcp.call('get_task', { task_id })).data.output).toEqual({ build: 42 })
  })
})

describe('the endpoint', () => {
  const initialize = {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
  }
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

  test('POST alone; the trace id is echoed and logged', async () => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const response = await control.fetch('/mcp', { method, headers: { accept: 'text/event-stream' } })
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    }
    const init = { method: 'POST', headers: { ...headers, 'x-trace-id': 'mine' }, body: JSON.stringify(initialize) }
    const response = await control.fetch('/mcp', init)
    expect([response.status, response.headers.get('x-trace-id')]).toEqual([200, 'mine'])
    expect(await response.text()).toContain('"protocolVersion":"2025-06-18"')
    await using mcp = await connectClient(control.url, 'auto', { 'x-trace-id': 'mine-too' })
    await mcp.call('run_action', { kind: 'noop' })
    await until(
      () => control.log.filter(({ msg, trace_id }) => msg === 'graph ended' && trace_id === 'mine-too').length,
      1,
    )
  })

  test.each([
    ['no JSON', '{', 400],
    ['nothing', '', 400],
    ['bytes that are no text', new Uint8Array([0xff, 0xfe]), 400],
    ['no message', '{"a": 1}', 400],
    [
      'an unknown method of the newer era',
      JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'no/such',
        params: {
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
      404,
    ],
  ])('%s is refused by the protocol', async (_, body, status) => {
    const modern = { ...headers, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'no/such' }
    const response = await control.fetch('/mcp', { method: 'POST', headers: status === 404 ? modern : headers, body })
    expect(response.status).toBe(status)
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: expect.any(Number) } })
  })

  test('a body that is too large is 413; another content type 415', async () => {
    await using small = await startControl({ flags: ['--max-body-bytes', '2048'] })
    const post = (body: string, more = {}) =>
      small.fetch('/mcp', { method: 'POST', headers: { ...headers, ...more }, body })
    expect((await post(JSON.stringify({ ...initialize, pad: 'x'.repeat(3_000) }))).status).toBe(413)
    expect((await post(JSON.stringify(initialize), { 'content-type': 'text/plain' })).status).toBe(415)
    const body = `{"pad": "${'x'.repeat(4 * 1024 * 1024)}"}`
    expect((await control.fetch('/mcp', { method: 'POST', headers, body })).status).toBe(413)
  })

  test('nothing is accepted while the service stops', async () => {
    const control = await startControl({ flags: ['--shutdown-timeout', '1h'] })
    await using mcp = await connectClient(control.url)
    await control.submit([sleep('held')])
    await control.reached('held', 'running')
    control.process.kill('SIGTERM')
    await until(() => control.log.some(({ msg }) => msg === 'stopping'))
    const { isError, text } = await mcp.call('run_action', { kind: 'noop' })
    expect([isError, text]).toEqual([true, 'the service is stopping and accepts no new graphs'])
    expect(await control.stop('SIGTERM')).toBe(0) // the second one ends what is held
    await control.dispose()
  })
})

test('input that is nested too deep is refused with the name of the field and the limit', async () => {
  const before = await control.list()
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
  const call = async (name: string, args: string) => {
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const text = await (await control.fetch('/mcp', { method: 'POST', headers, body })).text()
    return /"text":"([^"]*)"/.exec(text)?.[1]
  }
  const action = (levels: number) => `{"kind":"noop","input":{"message":${deep(levels)}}}`
  const graph = (levels: number) => `{"tasks":[{"id":"a","type":"noop","params":${deep(levels)}}]}`
  expect(await call('run_action', action(100_000))).toBe('invalid input: input: nested deeper than 202 levels')
  expect(await call('run_action', action(200))).toContain('action.input: nested deeper than 200 levels')
  expect(await call('submit_graph', graph(100_000))).toBe('invalid input: tasks: nested deeper than 202 levels')
  expect(await control.list()).toHaveLength(before.length)
})
