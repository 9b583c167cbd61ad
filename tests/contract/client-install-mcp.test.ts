/** `taskmill install-mcp --write`: against the built client, with a HOME of its own. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { TOOLS_BY_SET } from '../../control/mcp-server/tools.ts'
import { builtProgram } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { upData, upPlace } from '../support/up.ts'

const URL = 'http://127.0.0.1:9000'

function place() {
  const dir = tempDir()
  const project = join(dir.path, 'project')
  mkdirSync(project)
  const write = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runClient(['install-mcp', '--write', ...args], { url: URL, cwd: project, env: { HOME: dir.path, ...env } })
  return { home: dir.path, project, write, [Symbol.dispose]: () => dir[Symbol.dispose]() }
}

const http = { url: `${URL}/mcp` }

describe.each([
  ['claude', 'user', '.claude.json', { mcpServers: { taskmill: { type: 'http', ...http } } }],
  ['claude', 'project', 'project/.mcp.json', { mcpServers: { taskmill: { type: 'http', ...http } } }],
  ['cursor', 'user', '.cursor/mcp.json', { mcpServers: { taskmill: http } }],
  ['cursor', 'project', 'project/.cursor/mcp.json', { mcpServers: { taskmill: http } }],
  ['vscode', 'user', '.config/Code/User/mcp.json', { servers: { taskmill: { type: 'http', ...http } } }],
  ['vscode', 'project', 'project/.vscode/mcp.json', { servers: { taskmill: { type: 'http', ...http } } }],
  ['codex', 'user', '.codex/config.toml', { mcp_servers: { taskmill: http } }],
])('%s, for the %s', (client, scope, file, config) => {
  const flags = ['--client', client, '--scope', scope]

  test('gets its entry, once, and after it was shown', async () => {
    using here = place()
    const path = join(here.home, file)
    const tried = await here.write([...flags, '--dry-run'])
    expect(tried.envelope.data).toMatchObject({ file: path, written: false, needed: true })
    expect(tried.stderr).toContain(`${path}`)
    expect(existsSync(path)).toBe(false)
    const first = await here.write(flags)
    expect(first.exitCode).toBe(0)
    expect(first.envelope.data).toMatchObject({ client, file: path, written: true, config })
    expect(first.stderr).toContain(`"url": "${URL}/mcp"`)
    const text = readFileSync(path, 'utf8')
    expect(file.endsWith('.toml') ? Bun.TOML.parse(text) : JSON.parse(text)).toEqual(config)
    const again = await here.write(flags)
    expect(again.envelope.data).toMatchObject({ written: false, needed: false })
    expect(readFileSync(path, 'utf8')).toBe(text)
    expect(readdirSync(dirname(path)).filter((name) => name.includes('taskmill'))).toEqual([])
  })
})

test('keeps what the user added, comments included, and the old content beside it', async () => {
  using here = place()
  const path = join(here.project, '.vscode', 'mcp.json')
  mkdirSync(dirname(path))
  const before = `{
  // my servers
  "servers": {
    "other": { "command": "x" }, // stays
    "taskmill": { "type": "stdio", "command": "old", "args": ["mcp"], "env": { "SERVICE_URL": "u", "MINE": "1" }, "dev": {} },
  },
  "inputs": [],
}
`
  writeFileSync(path, before)
  const args = ['--client', 'vscode', '--scope', 'project', '--transport', 'stdio']
  const run = await here.write(args)
  expect(run.envelope.data).toMatchObject({ written: true, backup: `${path}.before-taskmill` })
  const program = await builtProgram('taskmill')
  const env = { MINE: '1', SERVICE_URL: URL }
  const entry = { type: 'stdio', command: program, args: ['mcp'], env, dev: {} }
  const shown = JSON.stringify(entry, null, 2).replaceAll('\n', '\n    ')
  expect(readFileSync(path, 'utf8')).toBe(before.replace(/("taskmill": )\{.*\},\n/, (_, name) => `${name}${shown},\n`))
  expect(readFileSync(`${path}.before-taskmill`, 'utf8')).toBe(before)
  // Over HTTP the host starts nothing, and an environment would mean nothing.
  await here.write(['--client', 'vscode', '--scope', 'project', '--transport', 'http'])
  expect(readFileSync(path, 'utf8')).not.toContain('MINE')
  expect(readFileSync(path, 'utf8')).toContain('"dev": {}')
})

test('a file that cannot be parsed is left as it is, with the reason', async () => {
  using here = place()
  const path = join(here.home, '.claude.json')
  writeFileSync(path, '{"mcpServers": {')
  const { exitCode, envelope } = await here.write(['--client', 'claude'])
  expect(exitCode).toBe(1)
  expect(envelope.error?.message).toStartWith(`cannot edit ${path}: it is not valid JSON: `)
  expect(envelope.error?.message).toEndWith('it is left as it is')
  expect(readFileSync(path, 'utf8')).toBe('{"mcpServers": {')
  expect(readdirSync(here.home).toSorted()).toEqual(['.claude.json', 'project'])
})

test('the token of other services is never written', async () => {
  using here = place()
  for (const client of ['claude', 'codex', 'cursor', 'vscode']) {
    for (const transport of ['http', 'stdio']) {
      const { envelope } = await here.write(['--client', client, '--transport', transport], {
        SERVICE_TOKEN: 'sesame-42',
      })
      const { file } = envelope.data as { file: string }
      expect(readFileSync(file, 'utf8')).not.toContain('sesame-42')
      expect(readFileSync(file, 'utf8')).toContain('SERVICE_TOKEN')
    }
  }
})

test.each([
  [['--client', 'codex', '--scope', 'project'], 'codex has no file for a project: name one with --file'],
  [['--client', 'generic'], 'the file of a generic host is not known: name it with --file'],
])('%j needs --file', async (args, message) => {
  using here = place()
  const { exitCode, envelope } = await here.write(args)
  expect({ exitCode, message: envelope.error?.message }).toEqual({ exitCode: 2, message })
  const file = join(here.project, 'a', 'servers')
  expect((await here.write([...args, '--file', file])).envelope.data).toMatchObject({ file, written: true })
  expect(readFileSync(file, 'utf8')).toContain('taskmill')
})

test.each(['--dry-run', '--scope=project', '--file=x', '--no-token'])(
  '%s without --write is a usage error',
  async (flag) => {
    const { exitCode, envelope } = await runClient(['install-mcp', flag], { url: URL })
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toContain('is for --write')
  },
)

test('an agent of the services of up gets a token of its own, which reads, submits, and cancels its own', async () => {
  await using here = await upPlace()
  upData(await here.up())
  const path = join(here.home, '.claude.json')
  writeFileSync(path, '{"other": 1}', { mode: 0o644 })
  const install = (...args: string[]) => here.client(['install-mcp', '--client', 'claude', '--write', ...args])
  const tried = await install('--dry-run')
  expect(tried.envelope.data).toMatchObject({ written: false, needed: true, token: { name: 'claude-code' } })
  const tokens = async () => (await here.client(['token', 'list'])).envelope.data!.tokens
  expect(await tokens()).toEqual([])

  const { envelope, stdout, stderr } = await install()
  const rights = ['read', 'submit', 'cancel_own']
  expect(envelope.data).toMatchObject({ written: true, token: { name: 'claude-code', rights } })
  expect(await tokens()).toEqual([{ name: 'claude-code', rights }])
  const entryOf = () => JSON.parse(readFileSync(path, 'utf8')).mcpServers.taskmill
  const { command, args, env } = entryOf()
  expect(env).toEqual({ SERVICE_TOKEN: expect.stringMatching(/^tmk_/) })
  expect(statSync(path).mode & 0o777).toBe(0o600)
  for (const shown of [stdout, stderr]) expect(shown).not.toContain(env.SERVICE_TOKEN)
  expect((await install()).envelope.data).toMatchObject({ written: false, needed: false })

  const client = new Client({ name: 'tests', version: '1' })
  await client.connect(new StdioClientTransport({ command, args, env: testEnvironment({ ...here.env, ...env }) }))
  const call = async (name: string, given: object) =>
    (await client.callTool({ name, arguments: { ...given } })).structuredContent as Record<string, unknown>
  const names = (await client.listTools()).tools.map(({ name }) => name)
  expect([names.includes('submit_graph'), names.includes('answer_approval')]).toEqual([true, false])
  const graph = { scope: 'graph', tasks: [{ id: 'a', type: 'approval' }] }
  const own = await call('submit_graph', graph)
  expect((await here.client(['graph', String(own.graph_id)])).envelope.data).toMatchObject({
    submitted_by: 'claude-code',
  })
  const file = join(here.home, 'graph.json')
  writeFileSync(file, JSON.stringify(graph))
  const other = (await here.client(['submit', file])).envelope.data!.graph_id
  const cancel = (graph_id: unknown) => client.callTool({ name: 'cancel', arguments: { graph_id } })
  expect((await cancel(other)).isError).toBe(true)
  expect((await cancel(own.graph_id)).isError).not.toBe(true)
  await client.close()

  // A token that was revoked is made again, and one of somebody else is left alone.
  await here.client(['token', 'revoke', 'claude-code'])
  await install()
  expect(entryOf().env.SERVICE_TOKEN).not.toBe(env.SERVICE_TOKEN)
  await here.client(['token', 'create', 'cursor', '--rights', 'operate'])
  const refused = await here.client(['install-mcp', '--client', 'cursor', '--write'])
  expect(refused.envelope.error?.message).toContain('has a token cursor with other rights')
  expect(existsSync(join(here.home, '.cursor'))).toBe(false)
  await install('--no-token')
  expect(entryOf().env).toBeUndefined()
})

test('neither the entry of a project has a token, nor one whose tokens file cannot be written', async () => {
  await using here = await upPlace()
  using gone = tempDir()
  const file = join(gone.path, 'tokens.json')
  writeFileSync(file, '{"tokens": []}', { mode: 0o600 })
  upData(await here.client(['up', ...here.flags], { env: { SERVICE_TOKENS_FILE: file } }))
  using project = tempDir()
  await here.client(['install-mcp', '--client', 'claude', '--scope', 'project', '--write'], { cwd: project.path })
  expect(readFileSync(join(project.path, '.mcp.json'), 'utf8')).not.toContain('SERVICE_TOKEN')
  expect((await here.client(['token'])).envelope.data).toMatchObject({ file, tokens: [] })
  unlinkSync(file)
  await here.client(['install-mcp', '--client', 'claude', '--write'])
  expect(readFileSync(join(here.home, '.claude.json'), 'utf8')).not.toContain('SERVICE_TOKEN')
})

test('the entry for the services of up without a token works before and after a restart of them', async () => {
  await using here = await upPlace()
  upData(await here.up())
  const { envelope } = await here.client(['install-mcp', '--client', 'claude', '--write', '--no-token'])
  const { command, args, env } = JSON.parse(readFileSync(join(here.home, '.claude.json'), 'utf8')).mcpServers.taskmill
  expect({ command, args, env }).toEqual({ command: await builtProgram('taskmill'), args: ['mcp'], env: undefined })
  expect(envelope.data).toMatchObject({ transport: 'stdio', written: true })
  await here.client(['down'])
  const client = new Client({ name: 'tests', version: '1' })
  const host = new StdioClientTransport({ command, args, env: testEnvironment(here.env) })
  upData(await here.client(['up']))
  await client.connect(host)
  expect((await client.listTools()).tools.length).toBe(TOOLS_BY_SET.graphs.length)
  await here.client(['down'])
  await expect(client.listTools()).rejects.toThrow('cannot reach the control service')
  upData(await here.client(['up', '--port', String(await freePort())]))
  expect((await client.listTools()).tools.length).toBe(TOOLS_BY_SET.graphs.length)
  await client.close()
})
