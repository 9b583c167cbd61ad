/** MCP servers that hang, die, flood and lie: a task says what happened, and nothing else comes to harm. */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { McpTools } from '../../shared/contract/mcp.ts'
import { oddServer, startMcpControl, textOf, WRONG_ANSWERS } from '../support/mcp.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'

describe('a server that does not start', () => {
  test('a program that does not exist', async () => {
    await using mcp = await startMcpControl({ odd: { command: 'no-such-program-42' } })
    const task = await mcp.run('odd/say')
    expect([task.error, task.runtime?.error?.code]).toEqual([
      'mcp server odd: cannot start no-such-program-42: no such program',
      'launch_failed',
    ])
  })

  test('a directory that does not exist', async () => {
    await using mcp = await startMcpControl({ odd: { command: 'sh', cwd: '/no/such/directory' } })
    expect((await mcp.run('odd/say')).error).toBe(
      'mcp server odd: cannot start sh: no such program, or no such directory /no/such/directory',
    )
  })

  test('a program that ends at once: its exit status and its last words are told', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['dies']), good: oddServer() })
    const task = await mcp.run('odd/say')
    expect([task.error, task.runtime?.error?.code]).toEqual([
      'mcp server odd ended before it answered: exit status 3; the end of its standard error: no licence found',
      'external_failure',
    ])
    const response = await mcp.control.fetch('/mcp/tools')
    const { tools, errors } = (await response.json()) as McpTools
    expect(errors).toEqual([{ server: 'odd', error: task.error! }])
    expect(tools.some(({ name }) => name === 'good/say')).toBe(true)
    expect((await mcp.run('discover')).result).toMatchObject({ errors })
    expect((await mcp.run('discover', { server: 'odd' })).error).toBe(task.error!)
  })

  test('a program that speaks something else: what it said is told', async () => {
    await using mcp = await startMcpControl({ odd: { command: 'echo', args: ['usage: echo me'] } })
    const { error } = await mcp.run('odd/say')
    expect(error).toMatch(
      /^mcp server odd ended before it answered: .*it wrote to its standard output: usage: echo me$/,
    )
  })

  test('one that never says a word can be waited for no longer than the timeout of the task', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['silent']) })
    const task = await mcp.run('odd/say', {}, { timeout: 200 })
    expect([task.status, task.error]).toEqual(['failed', 'task timed out after 200ms'])
    await mcp.control.submit([{ id: 'waiting', type: 'mcp', tool_name: 'odd/say' }])
    await mcp.control.reached('waiting', 'running')
    await mcp.control.fetch('/tasks/waiting/cancel', { method: 'POST' })
    expect((await mcp.control.ended('waiting')).status).toBe('cancelled')
  })

  test('one that never says a word is asked for its tools only while somebody waits for them', async () => {
    using dir = tempDir()
    const heard = join(dir.path, 'heard')
    await using mcp = await startMcpControl(
      { odd: oddServer(['silent'], { LOG_FILE: heard }) },
      { flags: ['--log-level', 'debug'] },
    )
    const client = new AbortController()
    const asking = mcp.control.fetch('/mcp/tools', { signal: client.signal })
    await until(() => existsSync(heard))
    client.abort()
    await expect(asking).rejects.toThrow()
    // Long before the server would be given up.
    await until(
      () => mcp.control.log,
      (log) => log.some(({ path }) => path === '/mcp/tools'),
      { patienceMs: 10_000 },
    )
    expect(mcp.control.log.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('one that ignores the question of the newer era is asked in the older one', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['ignores-the-newer-era']) })
    expect(textOf(await mcp.run('odd/say', { words: 'at last' }))).toBe('at last')
  }, 30_000)

  test('lines that are no messages are skipped', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['greets']) })
    expect(textOf(await mcp.run('odd/say', { words: 'hello' }))).toBe('hello')
  })

  test('one without tools has none', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['no-tools']) })
    expect((await mcp.run('discover', { server: 'odd' })).result).toEqual({ tools: [] })
    expect((await mcp.run('odd/say')).error).toBe('unknown tool "say" of mcp server odd (available: none)')
  })
})

describe('a server that dies', () => {
  test.each([
    ['die', 'exit status 4; the end of its standard error: something broke inside'],
    ['be-killed', 'terminated by signal SIGKILL'],
  ])('during a call (%s): all calls of it fail, the next one finds it alive', async (tool, how) => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    const pid = textOf(await mcp.run('odd/pid'))
    await mcp.control.submit([{ id: 'other', type: 'mcp', tool_name: 'odd/hang' }])
    await mcp.control.reached('other', 'running')
    const task = await mcp.run(`odd/${tool}`)
    expect([task.error, task.runtime?.error?.code]).toEqual([
      `mcp server odd ended before it answered: ${how}`,
      'external_failure',
    ])
    expect((await mcp.control.ended('other')).error).toBe(task.error!)
    const next = await mcp.run('odd/pid')
    expect(next.status).toBe('success')
    expect(textOf(next)).not.toBe(pid)
  })
})

describe('a server that floods', () => {
  test('a line without an end costs it the connection, not our memory', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    const task = await mcp.run('odd/flood')
    expect(task.error).toBe('mcp server odd ended before it answered: it sent a message of more than 16777216 bytes')
    expect((await mcp.run('odd/pid')).status).toBe('success')
  })

  test('so does an answer that is larger than a message may be', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    expect(textOf(await mcp.run('odd/big', { bytes: 1_000_000 })).length).toBe(1_000_000)
    const task = await mcp.run('odd/big', { bytes: 17_000_000 })
    expect(task.error).toContain('it sent a message of more than 16777216 bytes')
  })

  test('notifications that nobody wants are dropped', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    expect((await mcp.run('odd/chatter', { times: 50_000 })).status).toBe('success')
  })

  test('a long message of progress is cut', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    const { progress } = await mcp.run('odd/progress', { message: 'x'.repeat(100_000) })
    expect(progress![0]!.message).toBe(`${'x'.repeat(500)}... (99500 more characters)`)
  })
})

describe('a server that does not read', () => {
  test('what waits for it is bounded, and its calls end with their timeouts', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    await mcp.run('odd/turn-deaf')
    const words = 'x'.repeat(7_000_000)
    const ids = ['a', 'b', 'c']
    for (const id of ids) {
      await mcp.control.submit([{ id, type: 'mcp', tool_name: 'odd/say', input: { words }, timeout: 1_000 }])
    }
    const errors = await Promise.all(ids.map(async (id) => (await mcp.control.ended(id)).error))
    expect(errors.filter((error) => error === 'task timed out after 1000ms').length).toBe(2)
    expect(
      errors.filter((error) =>
        /^mcp server odd: the server does not read its input: \d+ bytes are waiting$/.test(error!),
      ).length,
    ).toBe(1)
  })

  test('it does not hold up the end of the service', async () => {
    const mcp = await startMcpControl({ odd: oddServer(['ignores-term']) }, { flags: ['--kill-grace', '50ms'] })
    const pid = Number(textOf(await mcp.run('odd/pid')))
    await mcp.run('odd/turn-deaf')
    await mcp.run('odd/say', { words: 'x'.repeat(1_000_000) }, { timeout: 50 })
    expect(await mcp.control.stop('SIGTERM')).toBe(0)
    expect(await isAlive(pid)).toBe(false)
    await mcp[Symbol.asyncDispose]()
  })

  test('nor does one that is just being started', async () => {
    using dir = tempDir()
    const log = join(dir.path, 'log')
    const silent = oddServer(['silent'], { LOG_FILE: log })
    const mcp = await startMcpControl({ odd: silent }, { flags: ['--shutdown-timeout', '0s', '--kill-grace', '50ms'] })
    await mcp.control.submit([{ id: 'waiting', type: 'mcp', tool_name: 'odd/say' }])
    await until(() => existsSync(log))
    expect(await mcp.control.stop('SIGTERM')).toBe(0)
    expect(existsSync(join(mcp.control.dataDir, 'mcp-processes.json'))).toBe(false)
    await mcp[Symbol.asyncDispose]()
  })
})

describe('a server that lies', () => {
  test('a tool whose schema is too deep is left out, and that is said', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['deep-tools']) })
    const error = 'mcp server odd: tools nested deeper than 200 levels are left out: deep'
    const errors = [{ server: 'odd', error }]
    const found = (await mcp.run('discover', { server: 'odd' })).result as McpTools
    expect(found.tools.map(({ name }) => name)).toEqual(['odd/say', 'odd/pid'])
    expect(found.errors).toEqual(errors)
    expect((await mcp.run('discover')).result).toMatchObject({ errors })
    expect(await (await mcp.control.fetch('/mcp/tools')).json()).toMatchObject({ errors })
    expect((await mcp.run('odd/deep')).error).toBe(
      `unknown tool "deep" of mcp server odd (available: pid, say); ${error}`,
    )
  })

  test('a tool that is listed twice is one', async () => {
    await using mcp = await startMcpControl({ odd: oddServer(['lists-twice']) })
    const { tools } = (await mcp.run('discover', { server: 'odd' })).result as McpTools
    expect(tools.filter(({ name }) => name === 'odd/say').length).toBe(1)
    expect(textOf(await mcp.run('say', { words: 'once' }))).toBe('once')
  })

  test('answers with ids of nobody are no answers', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    await mcp.run('odd/pid')
    const task = await mcp.run('odd/wrong-id', {}, { timeout: 200 })
    expect([task.status, task.error]).toEqual(['failed', 'task timed out after 200ms'])
    expect((await mcp.run('odd/pid')).status).toBe('success')
  })

  test('a second answer is none', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    expect(textOf(await mcp.run('odd/twice'))).toBe('first')
    expect(textOf(await mcp.run('odd/say', { words: 'next' }))).toBe('next')
  })

  test('a line that is not JSON is skipped', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    expect(textOf(await mcp.run('odd/not-json'))).toBe('after all')
  })

  test.each([
    ['shapeless', {}, /^mcp server odd: Invalid result for tools\/call/],
    ['structured', { value: 'no number' }, /Structured content does not match the tool's output schema/],
    ['deep', {}, /nested deeper than 200 levels/],
  ])('a result that is not what it should be (%s) fails the task', async (tool, input, error) => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    const task = await mcp.run(`odd/${tool}`, input)
    expect(task.error).toMatch(error)
    expect(task.runtime?.error?.code).toBe('external_failure')
    expect((await mcp.run('odd/structured', { value: 7 })).result).toMatchObject({ structuredContent: { value: 7 } })
  })

  test('an answer that is no MCP result fails the task', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    for (const [members, fault] of WRONG_ANSWERS) {
      const task = await mcp.run('odd/raw', { members }, { timeout: 30_000 })
      expect(task.error).toBe(`mcp server odd: its answer is no MCP result: ${fault}`)
      expect(task.runtime?.error?.code).toBe('external_failure')
    }
    expect(textOf(await mcp.run('odd/say', { words: 'next' }))).toBe('next')
  })

  test.each([
    ['no-list', 'mcp server odd: its answer is no MCP result: result: expected object, got null'],
    ['no-handshake', 'mcp server odd: its answer is no MCP result: result: expected object, got string'],
  ])('so does one to what is asked before (%s)', async (manner, error) => {
    await using mcp = await startMcpControl({ odd: oddServer([manner]) })
    const task = await mcp.run('odd/say', {}, { timeout: 30_000 })
    expect([task.error, task.runtime?.error?.code]).toEqual([error, 'external_failure'])
  })

  test('a server that asks for what nobody offered is told so', async () => {
    await using mcp = await startMcpControl({ odd: oddServer() })
    expect(textOf(await mcp.run('odd/ask'))).toBe('told -32601')
  })
})
