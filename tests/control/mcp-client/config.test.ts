/** The configuration of MCP servers: what is taken, and which field and remedy an error names. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_CONFIG_BYTES, MAX_SERVERS, parseMcpConfig, readMcpConfig } from '../../../control/mcp-client/config.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { tempDir } from '../../support/temp.ts'

const refuse = (detail: string): never => {
  throw new UsageError(detail)
}
const parse = (config: unknown, env: Record<string, string> = {}) =>
  parseMcpConfig(typeof config === 'string' ? config : JSON.stringify(config), env, refuse)
const parseServer = (server: unknown, env?: Record<string, string>) => parse({ mcpServers: { s: server } }, env)

test('servers to start and servers to reach, in the form that MCP clients know', () => {
  const servers = parse({
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'files'], env: { A: 'b' }, cwd: '/tmp', alwaysAllow: ['x'] },
      bare: { command: 'bare', args: null, env: null, type: 'stdio' },
      web: { type: 'http', url: 'https://example.org/mcp', headers: { Authorization: 'Bearer x' } },
      old: { url: 'http://127.0.0.1:3000' },
      off: { command: 'x', disabled: true },
    },
    inputs: [],
  })
  expect(servers).toEqual([
    { kind: 'stdio', name: 'files', command: 'npx', args: ['-y', 'files'], env: { A: 'b' }, cwd: '/tmp' },
    { kind: 'stdio', name: 'bare', command: 'bare', args: [], env: {}, cwd: undefined },
    { kind: 'http', name: 'web', url: 'https://example.org/mcp', headers: { Authorization: 'Bearer x' } },
    { kind: 'http', name: 'old', url: 'http://127.0.0.1:3000/', headers: {} },
  ])
  expect(parse({ mcpServers: {} })).toEqual([])
})

test('variables are put in, and may have defaults', () => {
  const env = { KEY: 'k', EMPTY: '', HOST: 'example.org' }
  const [server] = parseServer(
    { command: 'x', args: [`\${KEY}-\${EMPTY}\${NO:-d}`, '$KEY', `\${EMPTY:-e}`], env: { K: `\${KEY}` } },
    env,
  )
  expect(server).toMatchObject({ args: ['k-d', '$KEY', 'e'], env: { K: 'k' } })
  expect(parseServer({ url: `https://\${HOST}/\${PATHNAME:-mcp}` }, env)).toMatchObject([
    { url: 'https://example.org/mcp' },
  ])
})

describe('refusals', () => {
  test.each([
    ['{', /^it is not JSON: /],
    ['null', /^expected \{"mcpServers"/],
    [[], /^expected \{"mcpServers"/],
    [{ servers: {} }, /^expected \{"mcpServers"/],
    [{ mcpServers: [] }, /^mcpServers: expected object of servers, got array$/],
    [{ mcpServers: { s: 'x' } }, /^mcpServers\.s: expected object, got string$/],
    [{ mcpServers: { 'a/b': { command: 'x' } } }, /^mcpServers\.a\/b: the name must be 1 to 64 letters/],
    [{ mcpServers: { '': { command: 'x' } } }, /^mcpServers\.: the name must be/],
    [{ mcpServers: { 'mcp.x': { command: 'x' } } }, /^mcpServers\.mcp\.x: the name must not begin with "mcp\."/],
    [{ mcpServers: { builtin: { command: 'x' } } }, /^mcpServers\.builtin: the name is taken by the built-in server/],
    [
      {
        mcpServers: Object.fromEntries(Array.from({ length: MAX_SERVERS + 1 }, (_, i) => [`s${i}`, { command: 'x' }])),
      },
      /^mcpServers: there are 101, at most 100 are allowed$/,
    ],
  ])('%j', (config, message) => {
    expect(() => parse(config)).toThrow(message)
  })

  test.each([
    [{}, /^mcpServers\.s: give either "command" \(a server to start\) or "url"/],
    [{ command: 'x', url: 'http://h' }, /^mcpServers\.s: give either/],
    [{ command: 3 }, /^mcpServers\.s\.command: expected string, got number$/],
    [{ command: ' ' }, /^mcpServers\.s\.command: expected the name or path of a program/],
    [{ command: 'x\0' }, /^mcpServers\.s: command, args, env and cwd must not contain NUL/],
    [{ command: 'x', args: 'y' }, /^mcpServers\.s\.args: expected array of strings, got string$/],
    [{ command: 'x', args: ['a', 7] }, /^mcpServers\.s\.args\[1\]: expected string, got number$/],
    [{ command: 'x', env: [] }, /^mcpServers\.s\.env: expected object of strings, got array$/],
    [{ command: 'x', env: { A: 1 } }, /^mcpServers\.s\.env\.A: expected string, got number$/],
    [{ command: 'x', env: { 'A=B': '1' } }, /^mcpServers\.s\.env: "A=B" cannot be the name of a variable$/],
    [{ command: 'x', cwd: 1 }, /^mcpServers\.s\.cwd: expected string, got number$/],
    [{ command: 'x', type: 'http' }, /^mcpServers\.s\.type: "http" needs "url" instead of "command"$/],
    [{ url: 'http://h', type: 'stdio' }, /^mcpServers\.s\.type: "stdio" needs "command" instead of "url"$/],
    [{ url: 'http://h', type: 'sse' }, /^mcpServers\.s\.type: "sse" is not supported; give the URL of the streamable/],
    [{ url: 'http://h', type: 'carrier' }, /^mcpServers\.s\.type: expected "stdio" or "http", got "carrier"$/],
    [{ url: 'ftp://h' }, /^mcpServers\.s\.url: expected an http: or https: address/],
    [{ url: 'nonsense' }, /^mcpServers\.s\.url: expected an http: or https: address/],
    [{ url: 'http://h', headers: { A: 1 } }, /^mcpServers\.s\.headers\.A: expected string, got number$/],
    [
      { url: 'http://h', headers: { 'a b': 'c' } },
      /^mcpServers\.s\.headers: a name or value is not one that HTTP allows$/,
    ],
    [{ command: 'x', disabled: 'yes' }, /^mcpServers\.s\.disabled: expected true or false, got string$/],
    [
      { command: 'x', args: [`\${NOT_SET}`] },
      /^mcpServers\.s\.args\[0\]: the variable NOT_SET is not set; set it, or write \$\{NOT_SET:-default\}$/,
    ],
  ])('%j', (server, message) => {
    expect(() => parseServer(server)).toThrow(message)
  })
})

test('the file is named in its errors', () => {
  using dir = tempDir()
  const file = join(dir.path, 'mcp.json')
  const message = () => {
    try {
      return readMcpConfig(file, {})
    } catch (error) {
      expect(error).toBeInstanceOf(UsageError)
      return (error as Error).message
    }
  }
  expect(message()).toBe(`invalid --mcp-config ${file}: no such file; give a readable file`)
  writeFileSync(file, ' '.repeat(MAX_CONFIG_BYTES + 1))
  expect(message()).toBe(`invalid --mcp-config ${file}: it has 1048577 bytes, at most 1048576 are read`)
  writeFileSync(file, '{"mcpServers": {"s": {"command": 1}}}')
  expect(message()).toBe(`invalid --mcp-config ${file}: mcpServers.s.command: expected string, got number`)
  writeFileSync(file, '{"mcpServers": {"s": {"command": "x"}}}')
  expect(message()).toHaveLength(1)
  expect(() => readMcpConfig(dir.path, {})).toThrow('it is a directory; give a readable file')
  expect(readMcpConfig('', {})).toEqual([])
})
