/** Which server a call goes to, where that is decided without asking one. */
import { expect, test } from 'bun:test'
import { McpServers, type ToolCall } from '../../../control/mcp-client/servers.ts'
import { noServerOptions } from '../../support/mcp.ts'

const options = { signal: new AbortController().signal, onProgress: () => {} }
const none = new McpServers([], noServerOptions)

test.each<[ToolCall, string]>([
  [{ server: undefined, tool: 'echo', args: 1 }, 'echo'],
  [{ server: undefined, tool: 'builtin/echo', args: 1 }, 'echo'],
  [{ server: 'builtin', tool: 'echo', args: 1 }, 'echo'],
  [{ server: 'builtin', tool: 'other', args: 1 }, 'other'],
  [{ server: undefined, tool: 'other', args: 1 }, 'other'],
  [{ server: undefined, tool: 'a/b/c', args: 1 }, 'a/b/c'],
  [{ server: 'a', tool: 'b', args: 1 }, 'a/b'],
])('without configured servers %j is echoed', (call, tool_name) => {
  expect(none.call(call, options)).toEqual({ tool_name, echo: 1 })
})

test('once closed, no server is started any more', async () => {
  const servers = new McpServers(
    [{ kind: 'stdio', name: 's', command: 'true', args: [], env: {}, cwd: undefined }],
    noServerOptions,
  )
  await servers.close()
  await expect(servers.discover('s', options.signal)).rejects.toThrow('the service is stopping')
  await expect(servers.discover(undefined, options.signal)).rejects.toThrow('the service is stopping')
  expect(servers.call({ server: undefined, tool: 'echo', args: 1 }, options)).toEqual({ tool_name: 'echo', echo: 1 })
})

test('the built-in server is always named', () => {
  expect(none.names).toEqual(['builtin'])
  expect(none.hasConfigured).toBe(false)
})
