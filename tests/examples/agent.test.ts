/** What agents and their hosts are told works as it is written there. */
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { readMcpConfig } from '../../control/mcp-client/config.ts'
import { TOOLS_BY_SET } from '../../control/mcp-server/tools.ts'
import { runClient } from '../support/client.ts'
import { startControl } from '../support/control.ts'
import { everythingProgram, textOf } from '../support/mcp.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'

const ROOT = dirname(dirname(import.meta.dir))
const AGENT = join(ROOT, 'examples/agent')

test('.mcp.json is what install-mcp prints for the default address, and a client finds the tools there', async () => {
  const example = JSON.parse(readFileSync(join(AGENT, '.mcp.json'), 'utf8'))
  const { envelope } = await runClient(['install-mcp', '--client', 'claude'])
  expect(envelope.data?.config).toEqual(example)
  await using control = await startControl()
  const url: string = example.mcpServers.taskmill.url
  await using mcp = await connectClient(url.replace('http://127.0.0.1:8080', control.url))
  expect((await mcp.client.listTools()).tools.length).toBe(TOOLS_BY_SET.graphs.length)
})

test('mcp-servers.json is a configuration, and the server that it starts can be called', async () => {
  const file = join(AGENT, 'mcp-servers.json')
  expect(readMcpConfig(file, {}).map(({ name, kind }) => [name, kind])).toEqual([
    ['everything', 'stdio'],
    ['search', 'http'],
  ])
  using dir = tempDir()
  const config = JSON.parse(readFileSync(file, 'utf8'))
  // What npx would fetch is here already.
  const { args } = config.mcpServers.everything
  expect(args[1]).toStartWith('@modelcontextprotocol/server-everything@')
  const local = { command: Bun.which('node') ?? process.execPath, args: [everythingProgram, args[2]] }
  const mine = join(dir.path, 'mcp.json')
  writeFileSync(mine, JSON.stringify({ mcpServers: { ...config.mcpServers, everything: local } }))
  await using control = await startControl({ flags: ['--mcp-config', mine] })
  const task = await control.run({ type: 'mcp', tool_name: 'everything/echo', input: { message: 'hi' } })
  expect(textOf(task)).toBe('Echo: hi')
  expect(await control.stop('SIGTERM')).toBe(0)
})

describe('the skill', () => {
  const path = join(ROOT, 'docs/skills/taskmill/SKILL.md')
  const skill = readFileSync(path, 'utf8')
  const [, head = '', body = ''] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(skill) ?? []
  const front = Object.fromEntries(head.split('\n').map((line) => line.split(/: (.*)/).slice(0, 2))) as Record<
    string,
    string
  >

  test('has the form that hosts read', () => {
    expect(front.name).toBe(basename(dirname(path)))
    expect(front.name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/)
    expect(front.description!.length).toBeGreaterThan(100)
    expect(front.description!.length).toBeLessThanOrEqual(1024)
    expect(body.length).toBeLessThan(8_000)
  })

  test('its commands exist', async () => {
    const commands = [...body.matchAll(/taskmill ([a-z-]+)((?: --[a-z-]+)*)/g)]
    expect(commands.length).toBeGreaterThan(6)
    for (const [, name, flags] of commands) {
      const { exitCode, stderr } = await runClient([name!, '--help'])
      expect([name, exitCode]).toEqual([name, 0])
      for (const flag of flags!.split(' ').filter((text) => text !== '')) expect(stderr).toContain(flag)
    }
  })

  test('what it says of credentials and of a patch is accepted', async () => {
    const added = JSON.stringify({ id: 'new', type: 'noop' })
    const replaced = JSON.stringify({ id: 'run', type: 'noop' })
    const shown = (pattern: RegExp): Record<string, unknown> =>
      JSON.parse(pattern.exec(body)![1]!.replace('TASK', added).replace('TASK', replaced))
    const rule = shown(/`(\{"host": .*\})`/)
    const headers = { Authorization: shown(/`(\{"\$secret": [^`]*\})`/) }
    const env = shown(/`"env": (\{"API_KEY": [^`]*\})`/)
    const patch = shown(/`(\{"add": [^`]*\})`/)
    await using control = await startControl()
    const graph = {
      scope: 'graph',
      tasks: [
        { id: 'wait', type: 'approval' },
        { id: 'date', type: 'noop', depends_on: ['wait'] },
        { id: 'fetch', type: 'http', params: { url: 'https://api.example.com', headers }, depends_on: ['wait'] },
        {
          ...{ id: 'run', type: 'runtime.script', depends_on: ['wait'] },
          params: { script: 'true', env, sandbox: { profile: 'linux_sandbox', network: { allow: [rule] } } },
        },
      ],
    }
    const answer = await control.post(graph)
    expect([answer.status, await answer.clone().text()]).toEqual([202, expect.any(String)])
    const { graph_id } = (await answer.json()) as { graph_id: string }
    const patched = await control.fetch(`/graphs/${graph_id}`, { method: 'PATCH', body: JSON.stringify(patch) })
    expect([patched.status, await patched.text()]).toEqual([200, expect.stringContaining('"removed":["date"]')])
  })

  test('what it shows runs, in the order in which it is shown', async () => {
    await using control = await startControl()
    const here = (text: string) => text.replaceAll('http://127.0.0.1:8080', control.url)
    const [, action] = /echo '(.*)' \| taskmill act/.exec(body)!
    const acted = await runClient(['act'], { url: control.url, stdin: action! })
    expect((await control.ended((acted.envelope.data!.task_ids as string[])[0]!)).status).toBe('success')
    const [, graph] = /```json\n([\s\S]*?)```/.exec(body)!
    const submitted = await runClient(['submit'], { url: control.url, stdin: here(graph!) })
    expect(submitted.exitCode).toBe(0)
    const [, wait] = /^taskmill (wait .*)$/m.exec(body)!
    const waited = await runClient(wait!.split(' '), { url: control.url })
    expect(waited.envelope.data).toMatchObject({
      all_terminal: true,
      tasks: [{ status: 'success' }, {}, { status: 'success' }],
    })
    const [, cancel] = /^taskmill (cancel [^#\n]*)/m.exec(body)!
    expect((await runClient(cancel!.trim().split(' '), { url: control.url })).exitCode).toBe(0)
  })
})
