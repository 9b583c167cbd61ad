/** The type `mcp`: discover, call, poll, <server>/<tool>, and the built-in server, against the built service. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HandleRecord, McpTools } from '../../shared/contract/mcp.ts'
import { processesOfTasks } from '../../shared/process/process-reserve.ts'
import { type Control, startControl } from '../support/control.ts'
import { modernServer, oddServer, startMcpControl, textOf } from '../support/mcp.ts'
import { processLimitIn } from '../support/process-limit.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const echoTool = {
  name: 'builtin/echo',
  category: 'mcp',
  description: 'Answers what it was called with.',
  input_schema: { type: 'object', description: 'Whatever is to be answered.', additionalProperties: true },
  metadata: { server: 'builtin' },
}

describe('without configured servers', () => {
  test('the built-in echo is there, under builtin/echo and under echo', async () => {
    await using control = await startControl()
    const input = { text: 'hi', deep: [{ a: null }] }
    for (const tool_name of ['builtin/echo', 'echo', 'mcp.builtin/echo']) {
      const task = await control.run({ type: 'mcp', tool_name, input })
      expect([task.status, task.result]).toEqual(['success', { tool_name: 'echo', echo: input }])
      expect([task.type, task.execution_category]).toEqual(['mcp', 'mcp'])
    }
    expect((await control.run({ type: 'mcp', tool_name: 'echo' })).result).toEqual({ tool_name: 'echo', echo: {} })
    expect((await control.metrics()).by_type).toEqual({ mcp: 4 })
  })

  test('a call of any tool name goes to it', async () => {
    const call = async (input: object) => (await control.run({ type: 'mcp', tool_name: 'call', input })).result
    const args = { arguments: { a: 1 } }
    expect(await call({ tool: 'whatever', ...args })).toEqual({ tool_name: 'whatever', echo: { a: 1 } })
    expect(await call({ server: 'builtin', tool: 'x', ...args })).toEqual({ tool_name: 'x', echo: { a: 1 } })
    expect(await call({ server: 'files', tool: 'x', ...args })).toEqual({ tool_name: 'files/x', echo: { a: 1 } })
    expect((await control.run({ type: 'mcp', tool_name: 'files/x', params: { a: 1 } })).result).toEqual({
      tool_name: 'files/x',
      echo: { a: 1 },
    })
  })

  test('discover lists it', async () => {
    expect((await control.run({ type: 'mcp', tool_name: 'discover' })).result).toEqual({ tools: [echoTool] })
    const builtin = await control.run({ type: 'mcp', tool_name: 'discover', input: { server: 'builtin' } })
    expect(builtin.result).toEqual({ tools: [echoTool] })
  })

  test.each([
    ['a missing tool_name', {}, 'unknown mcp tool "" (available: builtin/echo, call, discover, poll)'],
    [
      'an unknown tool_name',
      { tool_name: 'nonsense' },
      'unknown mcp tool "nonsense" (available: builtin/echo, call, discover, poll)',
    ],
    ['call without a tool', { tool_name: 'call', input: {} }, 'tool is required'],
    [
      'call of a server that is no text',
      { tool_name: 'call', input: { tool: 'x', server: 3 } },
      'parse call params: server: expected string',
    ],
    ['poll without a handle', { tool_name: 'poll' }, 'handle_id is required'],
    [
      'discover of an unknown server',
      { tool_name: 'discover', input: { server: 'files' } },
      'unknown mcp server "files" (available: builtin)',
    ],
    ['a list of parameters', { tool_name: 'poll', input: [] }, 'parse poll params: expected object'],
  ])('%s is accepted and fails when run', async (_, task, error) => {
    const record = await control.run({ type: 'mcp', ...task })
    expect([record.status, record.error, record.runtime?.error?.code]).toEqual(['failed', error, 'invalid_input'])
  })

  test('poll of an unknown handle, or of a task of another type, fails', async () => {
    await control.submit([{ id: 'other', type: 'noop' }])
    for (const handle_id of ['nobody', 'other']) {
      const { error, runtime } = await control.run({ type: 'mcp', tool_name: 'poll', input: { handle_id } })
      expect([error, runtime?.error?.code]).toEqual([`handle not found: ${handle_id}`, 'not_found'])
    }
  })

  test('mcp.call actions run', async () => {
    const act = async (action: object) => {
      const body = JSON.stringify({ action: { kind: 'mcp.call', ...action } })
      const response = await control.fetch('/adapters/actions', { method: 'POST', body })
      expect(response.status).toBe(202)
      const { task_ids } = (await response.json()) as { task_ids: string[] }
      return (await control.ended(task_ids[0]!)).result
    }
    const echoed = { tool_name: 'echo', echo: { a: 1 } }
    expect(await act({ tool_name: 'builtin/echo', input: { a: 1 } })).toEqual(echoed)
    expect(await act({ input: { server: 'builtin', tool: 'echo', arguments: { a: 1 } } })).toEqual(echoed)
  })
})

describe('GET /mcp/tools, POST /mcp/call, GET /mcp/tasks/{id}', () => {
  const call = async (control: { fetch: (path: string, init: RequestInit) => Promise<Response> }, body: unknown) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await control.fetch('/mcp/call', { method: 'POST', body: text })
    return { status: response.status, body: (await response.json()) as HandleRecord & { error: unknown } }
  }

  test('a call is accepted with a handle, and the handle tells what came of it', async () => {
    const tools = await control.fetch('/mcp/tools')
    expect([tools.status, await tools.json()]).toEqual([200, { tools: [echoTool] }])

    const { status, body } = await call(control, { id: 'mine', tool_name: 'echo', input: { a: 1 } })
    expect(status).toBe(202)
    expect(body).toEqual({
      ...{ task_id: 'mine', status: 'accepted', handle_id: 'mine', progress: [] },
      started_at: expect.any(String),
    } as unknown as typeof body)
    await control.ended('mine')
    const polled = (await (await control.fetch(`/mcp/tasks/${body.handle_id}`)).json()) as HandleRecord
    expect(polled).toEqual({
      ...{ task_id: 'mine', status: 'success', handle_id: 'mine', progress: [] },
      output: { tool_name: 'echo', echo: { a: 1 } },
      started_at: expect.any(String),
      finished_at: expect.any(String),
      duration_ms: expect.any(Number),
    } as unknown as HandleRecord)
    const again = await control.run({ type: 'mcp', tool_name: 'poll', input: { handle_id: 'mine' } })
    expect(again.result).toEqual(polled)
  })

  test('a task polls a call of its own graph before one of the service', async () => {
    const say = (text: string) => ({ id: 'say', type: 'mcp', tool_name: 'echo', input: { text } })
    await control.run({ ...say('service'), id: 'say' })
    const poll = { id: 'poll', type: 'mcp', tool_name: 'poll', input: { handle_id: 'say' }, depends_on: ['say'] }
    const body = JSON.stringify({ scope: 'graph', tasks: [say('graph'), poll] })
    const answer = await (await control.fetch('/tasks?wait_ms=20000', { method: 'POST', body })).json()
    const { graph_id } = answer as { graph_id: string }
    const polled = await (await control.fetch(`/graphs/${graph_id}/tasks/poll`)).json()
    expect(polled).toMatchObject({ status: 'success', result: { output: { echo: { text: 'graph' } } } })
    const outside = await control.run({ ...poll, depends_on: [] })
    expect(outside.result).toMatchObject({ output: { echo: { text: 'service' } } })
  })

  test('without an id one is made; any tool name goes to the echo; the task is one like any other', async () => {
    const { body } = await call(control, { tool_name: 'whatever', input: 'just text' })
    expect(body.task_id).toMatch(/^mcp-[0-9a-f-]{36}$/)
    const task = await control.ended(body.task_id)
    expect([task.type, task.tool_name, task.status]).toEqual(['mcp', 'builtin/whatever', 'success'])
    expect(task.result).toEqual({ tool_name: 'whatever', echo: 'just text' })
  })

  test.each([
    ['no tool_name', {}, 'tool_name is required'],
    ['a blank tool_name', { tool_name: ' ' }, 'tool_name is required'],
    ['nothing', 'null', 'tool_name is required'],
    ['a tool_name that is no text', { tool_name: 1 }, 'invalid JSON: tool_name: expected string, got number'],
    ['an id that is no text', { tool_name: 'echo', id: {} }, 'invalid JSON: id: expected string, got object'],
    [
      'half a timeout',
      { tool_name: 'echo', timeout: 1.5 },
      'invalid JSON: timeout: expected integer of milliseconds (30000), got number',
    ],
    ['a list', [], 'invalid JSON: expected object with a tool_name, got array'],
    [
      'deep input',
      `{"tool_name":"echo","input":${'['.repeat(300)}${']'.repeat(300)}}`,
      'invalid JSON: input: nested deeper than 200 levels',
    ],
    [
      'a number of JSON beyond doubles',
      '{"tool_name":"echo","input":{"a":1e400}}',
      'invalid JSON: input: a number is out of range',
    ],
  ])('%s is refused: 400', async (_, body, error) => {
    const before = await control.metrics()
    const refused = await call(control, body)
    expect([refused.status, refused.body as unknown]).toEqual([400, { error }])
    expect(await control.metrics()).toEqual(before)
  })

  test('an id in use is 409, an unknown handle 404', async () => {
    await control.submit([{ id: 'busy', type: 'sleep', params: { duration_ms: 600_000 } }])
    const { status, body } = await call(control, { id: 'busy', tool_name: 'echo' })
    expect([status, body.error as unknown]).toEqual([
      409,
      expect.stringContaining('task already active: busy (in graph '),
    ])
    for (const id of ['busy', 'nobody']) {
      const response = await control.fetch(`/mcp/tasks/${id}`)
      expect([response.status, await response.json()]).toEqual([404, { error: `handle not found: ${id}` }])
    }
  })

  test('a failed call says so; large output is whole; both survive a restart', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const servers = { odd: oddServer() }
    const handles: HandleRecord[] = []
    {
      await using mcp = await startMcpControl(servers, { dataDir })
      await call(mcp.control, { id: 'failed', tool_name: 'odd/fail' })
      await call(mcp.control, { id: 'large', tool_name: 'odd/big', input: { bytes: 300_000 } })
      await mcp.control.allEnded()
      for (const id of ['failed', 'large']) {
        handles.push((await (await mcp.control.fetch(`/mcp/tasks/${id}`)).json()) as HandleRecord)
      }
    }
    const [failed, large] = handles as [HandleRecord, HandleRecord]
    expect([failed.status, failed.error]).toEqual([
      'failed',
      { code: 'external_failure', message: 'the disk is on fire' },
    ])
    expect((large.output as { content: { text: string }[] }).content[0]!.text.length).toBe(300_000)
    await using later = await startMcpControl(servers, { dataDir })
    expect((await (await later.control.fetch('/mcp/tasks/failed')).json()) as HandleRecord).toEqual(failed)
    expect((await (await later.control.fetch('/mcp/tasks/large')).json()) as HandleRecord).toEqual(large)
    const polled = await later.run('poll', { handle_id: 'large' })
    expect(polled.result).toEqual(large)
  })

  test('with configured servers an unknown tool is 202 and ends failed', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    const { status, body } = await call(mcp.control, { tool_name: 'nonsense' })
    expect(status).toBe(202)
    const task = await mcp.control.ended(body.task_id)
    expect([task.status, task.error]).toEqual([
      'failed',
      'unknown mcp tool "nonsense" (available: call, discover, poll and the tools of builtin, odd)',
    ])
  })

  test('a timeout holds for the call', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    await mcp.run('odd/pid')
    await call(mcp.control, { id: 'late', tool_name: 'odd/hang', timeout: 50 })
    await mcp.control.ended('late')
    const late = (await (await mcp.control.fetch('/mcp/tasks/late')).json()) as HandleRecord
    expect([late.status, late.error?.code]).toEqual(['failed', 'timeout'])
  })
})

describe('configured servers', () => {
  type McpControl = Awaited<ReturnType<typeof startMcpControl>>
  let mcp: McpControl
  let both: McpControl
  beforeAll(async () => {
    mcp = await startMcpControl({ odd: oddServer() })
    both = await startMcpControl({ odd: oddServer(), other: oddServer() })
  })
  afterAll(() => Promise.all([mcp, both].map((each) => each[Symbol.asyncDispose]())))

  test('their tools are listed as <server>/<tool>, and called under that name or by call', async () => {
    const { tools } = (await (await mcp.control.fetch('/mcp/tools')).json()) as McpTools
    expect(tools[0]).toEqual(echoTool as (typeof tools)[0])
    expect(tools.find(({ name }) => name === 'odd/say')).toEqual({
      name: 'odd/say',
      category: 'mcp',
      description: 'The tool say.',
      input_schema: { type: 'object' },
      metadata: { server: 'odd' },
    })
    expect((await mcp.run('discover')).result).toEqual({ tools })
    expect((await mcp.run('discover', { server: 'odd' })).result).toEqual({ tools: tools.slice(1) })

    const said = { server: 'odd', tool: 'say', content: [{ type: 'text', text: 'hello' }] }
    expect((await mcp.run('odd/say', { words: 'hello' })).result).toEqual(said)
    expect((await mcp.run('say', { words: 'hello' })).result).toEqual(said)
    const args = { arguments: { words: 'hello' } }
    expect((await mcp.run('call', { server: 'odd', tool: 'say', ...args })).result).toEqual(said)
    expect((await mcp.run('call', { tool: 'odd/say', ...args })).result).toEqual(said)
    expect((await mcp.run('echo', { a: 1 })).result).toEqual({ tool_name: 'echo', echo: { a: 1 } })
  })

  test.each([
    [
      'odd/nonsense',
      /^unknown tool "nonsense" of mcp server odd \(available: ask, be-killed, big, .*, structured, turn-deaf and 2 more\)$/,
    ],
    ['else/say', /^unknown mcp server "else" \(available: builtin, odd, other\)$/],
    ['builtin/nonsense', /^unknown tool "nonsense" of mcp server builtin \(available: echo\)$/],
    [
      'nonsense',
      /^unknown mcp tool "nonsense" \(available: call, discover, poll and the tools of builtin, odd, other\)$/,
    ],
    ['say', /^several mcp servers have a tool "say": name one of odd\/say, other\/say$/],
  ])('%s names nothing that could be called', async (name, error) => {
    const task = await both.run(name)
    expect(task.error).toMatch(error)
    expect(task.runtime?.error?.code).toBe('invalid_input')
  })

  test('a server that is not configured is warned of', async () => {
    const message = 'unknown mcp server "else" (available: builtin, odd)'
    const named = [
      { id: 'short', type: 'mcp', tool_name: 'else/say' },
      { id: 'call', type: 'mcp', tool_name: 'call', input: { server: 'else', tool: 'say' } },
      { id: 'split', type: 'mcp', tool_name: 'call', input: { tool: 'else/say' } },
      { id: 'discover', type: 'mcp', tool_name: 'discover', input: { server: 'else' } },
    ]
    const { warnings } = await mcp.control.submit(named)
    expect(warnings).toEqual(named.map(({ id }) => ({ task_id: id, message })))
    for (const { id } of named) expect((await mcp.control.ended(id)).error).toBe(message)
  })

  test('arguments must be an object', async () => {
    expect((await mcp.run('odd/say', 'hello')).error).toBe('parse mcp params: arguments: expected object')
  })

  test('isError fails the task with the text; the result is kept', async () => {
    const failed = await mcp.run('odd/fail', {}, { retry: 1 })
    expect([failed.status, failed.error, failed.attempt]).toEqual([
      'failed',
      'task failed after all retries: the disk is on fire',
      2,
    ])
    expect(failed.runtime?.error?.code).toBe('external_failure')
    expect(failed.result).toMatchObject({ isError: true, content: [{ text: 'the disk is on fire' }] })
    expect((await mcp.run('odd/fail-mutely')).error).toBe(
      'tool fail-mutely of mcp server odd failed and did not say why',
    )
    const refused = await mcp.run('odd/refuse')
    expect(refused.error).toContain('these arguments are odd')
    expect(refused.runtime?.error?.code).toBe('external_failure')
  })

  test('the environment is the configured one and the minimal one, and nothing of the service', async () => {
    await using mcp = await startMcpControl(
      {
        odd: oddServer([], {
          TASKMILL_ATTEMPT: 'mine',
          GREETING: 'hello',
          SECRET: `\${API_KEY}`,
          MODE: `\${MODE:-quiet}`,
        }),
      },
      { env: { API_KEY: 'k-42', SERVICE_TOKEN_OF_OTHERS: 'x' } },
    )
    const env = JSON.parse(textOf(await mcp.run('odd/env'))) as Record<string, string>
    expect(Object.keys(env).sort()).toEqual(
      ['GREETING', 'HOME', 'LANG', 'MODE', 'PATH', 'SECRET', 'TASKMILL_ATTEMPT', 'TMPDIR', 'USER'].sort(),
    )
    expect(env.TASKMILL_ATTEMPT).toMatch(/^\d+-\d+\/mcp\/odd$/)
    expect([env.GREETING, env.SECRET, env.MODE]).toEqual(['hello', 'k-42', 'quiet'])
  })

  test('a server is started when it is needed, once for all calls, and again when it has died', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(), broken: oddServer(['dies']) })
    expect(existsSync(join(mcp.control.dataDir, 'mcp-processes.json'))).toBe(false)
    const pids = await Promise.all([1, 2, 3].map(async () => textOf(await mcp.run('odd/pid'))))
    expect(new Set(pids).size).toBe(1)
    process.kill(Number(pids[0]), 'SIGKILL')
    await until(() => isAlive(Number(pids[0])), false)
    const next = await until(
      () => mcp.run('odd/pid'),
      ({ status }) => status === 'success',
    )
    expect(textOf(next)).not.toBe(pids[0]!)
  })

  test.skipIf(process.platform !== 'linux')(
    'a server leaves the last processes of the user to the service',
    async () => {
      const pid = textOf(await mcp.run('odd/pid'))
      const [server, service] = [pid, mcp.control.process.pid].map((each) =>
        processLimitIn(readFileSync(`/proc/${each}/limits`, 'utf8')),
      )
      expect(server).toBe(processesOfTasks(service!))
    },
  )

  test('both eras of the protocol are spoken', async () => {
    await using mcp = await startMcpControl({
      old: oddServer(),
      new: modernServer,
      brittle: oddServer(['dies-of-the-newer-era']),
    })
    expect(textOf(await mcp.run('new/era'))).toBe('2026-07-28')
    expect((await mcp.run('old/pid')).status).toBe('success')
    expect((await mcp.run('brittle/pid')).status).toBe('success')
    const eras = await until(
      () => mcp.control.log.filter(({ msg }) => msg === 'connected to an MCP server'),
      ({ length }) => length >= 3,
    )
    expect(Object.fromEntries(eras.map(({ server, era }) => [server, era]))).toEqual({
      old: 'legacy',
      new: 'modern',
      brittle: 'legacy',
    })
  })

  test('what a server reports is progress of the task', async () => {
    const task = await mcp.run('odd/progress', { message: 'half of it' })
    expect(task.progress).toEqual([
      { timestamp: expect.any(String) as unknown as string, message: 'half of it', data: { progress: 1, total: 2 } },
    ])
  })

  test('timeout and cancel are passed on to the server; it serves others all the while', async () => {
    using dir = tempDir()
    const log = join(dir.path, 'log')
    await using mcp = await startMcpControl({ odd: oddServer([], { LOG_FILE: log }) })
    const messages = () =>
      (existsSync(log) ? readFileSync(log, 'utf8') : '')
        .split('\n')
        .filter((line) => line !== '')
        .map(
          (line) => JSON.parse(line) as { id?: number; method: string; params?: { name?: string; requestId?: number } },
        )
    const hanging = () =>
      messages()
        .filter(({ params }) => params?.name === 'hang')
        .map(({ id }) => id)
    const cancelled = () =>
      messages()
        .filter(({ method }) => method === 'notifications/cancelled')
        .map(({ params }) => params?.requestId)
    await mcp.run('odd/pid')
    const late = await mcp.run('odd/hang', {}, { timeout: 500 })
    expect([late.status, late.error, late.runtime?.error?.code]).toEqual([
      'failed',
      'task timed out after 500ms',
      'timeout',
    ])
    await until(cancelled, (ids) => ids.length === 1)
    expect(cancelled()).toEqual(hanging())

    await mcp.control.submit([{ id: 'hang', type: 'mcp', tool_name: 'odd/hang' }])
    await until(hanging, (ids) => ids.length === 2)
    expect((await mcp.run('odd/say', { words: 'still here' })).status).toBe('success')
    await mcp.control.fetch('/tasks/hang/cancel', { method: 'POST' })
    expect((await mcp.control.ended('hang')).status).toBe('cancelled')
    await until(cancelled, (ids) => ids.length === 2)
    expect(cancelled()).toEqual(hanging())
  })
})

describe('the ends of servers', () => {
  test('SIGTERM of the service ends them and all they started: TERM, grace, KILL', async () => {
    using dir = tempDir()
    const log = join(dir.path, 'log')
    const manners = ['ignores-term', 'has-child', 'outlives-its-input']
    const mcp = await startMcpControl(
      { odd: oddServer(manners, { LOG_FILE: log }) },
      { flags: ['--kill-grace', '100ms'] },
    )
    const pid = Number(textOf(await mcp.run('odd/pid')))
    const child = Number(/"child":(\d+)/.exec(readFileSync(log, 'utf8'))![1])
    expect([await isAlive(pid), await isAlive(child)]).toEqual([true, true])
    expect(await mcp.control.stop('SIGTERM')).toBe(0)
    expect([await isAlive(pid), await isAlive(child)]).toEqual([false, false])
    expect(existsSync(join(mcp.control.dataDir, 'mcp-processes.json'))).toBe(false)
    await mcp[Symbol.asyncDispose]()
  })

  test('what a killed service has left is ended at the next start', async () => {
    using dir = tempDir()
    const log = join(dir.path, 'log')
    const dataDir = join(dir.path, 'data')
    const manners = ['has-child', 'outlives-its-input']
    const first = await startMcpControl({ odd: oddServer(manners, { LOG_FILE: log }) }, { dataDir })
    const pid = Number(textOf(await first.run('odd/pid')))
    const child = Number(/"child":(\d+)/.exec(readFileSync(log, 'utf8'))![1])
    await first.control.stop('SIGKILL')
    expect(await isAlive(child)).toBe(true)
    await using second = await startMcpControl({}, { dataDir, flags: ['--kill-grace', '100ms'] })
    expect([await isAlive(pid), await isAlive(child)]).toEqual([false, false])
    expect(second.control.log.some(({ msg }) => String(msg).startsWith('ending what an earlier run'))).toBe(true)
    await first[Symbol.asyncDispose]()
  })

  test('a record that is broken, or names a stranger, harms nobody', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const first = await startControl({ dataDir })
    await first.stop('SIGKILL')
    writeFileSync(join(dataDir, 'mcp-processes.json'), `[{"pid": ${process.pid}, "start_time": 1, "boot_id": "x"}, 7]`)
    const second = await startControl({ dataDir })
    await second.stop('SIGKILL')
    writeFileSync(join(dataDir, 'mcp-processes.json'), '{not json')
    await using third = await startControl({ dataDir })
    expect((await third.run({ type: 'mcp', tool_name: 'echo' })).status).toBe('success')
    await first.dispose()
    await second.dispose()
  })
})
