/** MCP servers for tests, as entries of a control configuration. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { McpServersOptions } from '../../control/mcp-client/servers.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { type Control, type ControlOptions, startControl } from './control.ts'
import { tempDir } from './temp.ts'

const FIXTURES = join(import.meta.dir, '../fixtures')
const MODULES = join(import.meta.dir, '../../node_modules')

/** The configuration of the fixture server, with manners of it. */
export const oddServer = (manners: readonly string[] = [], env: Readonly<Record<string, string>> = {}) => ({
  command: process.execPath,
  args: [join(FIXTURES, 'mcp-server.ts'), ...manners],
  env,
})

/** The configuration of a server that speaks the newer era only. */
export const modernServer = { command: process.execPath, args: [join(FIXTURES, 'modern-mcp-server.ts')] }

/** The program of somebody else's server. */
export const everythingProgram = join(MODULES, '@modelcontextprotocol/server-everything/dist/index.js')

/** For services of which no server is configured. */
export const noServerOptions: McpServersOptions = {
  ...{ killGraceMs: 0, env: {}, serviceId: 'test', log: silentLog() },
  record: { add: () => {}, remove: () => {} },
}

export interface McpControl extends AsyncDisposable {
  readonly control: Control
  /** Runs a task of the type mcp to its end. */
  run(toolName: string, input?: unknown, more?: object): Promise<TaskRecord>
}

/** A control service that knows `servers`. */
export async function startMcpControl(
  servers: Readonly<Record<string, object>>,
  options: ControlOptions = {},
): Promise<McpControl> {
  const dir = tempDir()
  const file = join(dir.path, 'mcp.json')
  writeFileSync(file, JSON.stringify({ mcpServers: servers }))
  const control = await startControl({ ...options, flags: ['--mcp-config', file, ...(options.flags ?? [])] })
  return {
    control,
    run: (toolName, input, more) => control.run({ type: 'mcp', tool_name: toolName, input, ...more }),
    async [Symbol.asyncDispose]() {
      await control.stop('SIGTERM')
      await control.dispose()
      dir[Symbol.dispose]()
    },
  }
}

/** The text that a tool answered. */
export const textOf = ({ result }: TaskRecord): string =>
  (result as { content: { text: string }[] }).content.map(({ text }) => text).join('')

/** Members of answers that are none, and what is said of them. */
export const WRONG_ANSWERS: readonly (readonly [members: object, fault: string])[] = [
  [{ result: null }, 'result: expected object, got null'],
  [{ result: 's' }, 'result: expected object, got string'],
  [{ result: [] }, 'result: expected object, got array'],
  [{}, 'it has neither a result nor an error'],
  [{ error: null }, 'error: expected object, got null'],
  [{ error: 's' }, 'error: expected object, got string'],
  [{ error: { code: 'x', message: 5 } }, 'error.code: expected integer, got string'],
  [{ error: { code: 1, message: 5 } }, 'error.message: expected string, got number'],
  [{ result: {}, error: { code: 1, message: 'm' } }, 'it has both a result and an error'],
  [{ result: { content: [] }, comment: 1 }, 'it has a member "comment"'],
  [{ result: { content: [], _meta: 5 } }, 'its _meta is malformed'],
  [{ jsonrpc: '1.0', result: { content: [] } }, 'jsonrpc: expected "2.0", got string'],
]
