/**
 * Reads the configured MCP servers from a file in the usual form of MCP clients: `{"mcpServers": {"files": {"command":
 * "...", "args": [], "env": {}}, "search": {"url": "...", "headers": {}}}}`.
 *
 * The file is read once, at the start. Any fault in it stops the start, because a silently missing server would show up
 * as a failed task hours later. Keys of other clients are ignored, except `disabled`.
 */
import { readFileSync, statSync } from 'node:fs'
import { messageOf, systemCodeOf, UsageError } from '../../shared/contract/errors.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'

/** A local server, which the service starts. It communicates over standard input and output. */
export interface StdioServerConfig {
  readonly kind: 'stdio'
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  /** Added to the few variables that every process gets. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | undefined
}

/** A remote server. It communicates over streamable HTTP. */
export interface HttpServerConfig {
  readonly kind: 'http'
  readonly name: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export type McpServerConfig = StdioServerConfig | HttpServerConfig

/** The name of the builtin server. No other server may have it. */
export const BUILTIN_SERVER = 'builtin'

/** Maximum bytes of a configuration. Real ones have a few thousand. */
export const MAX_CONFIG_BYTES = 1024 * 1024

/** Maximum number of servers. Each may become a process. */
export const MAX_SERVERS = 100

/** Names without a slash, which separates the name of a server from the name of a tool. */
const SERVER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/

const HTTP_TYPES = ['http', 'streamable-http', 'streamableHttp', 'streamable_http']

/** The servers in the file `path`. No servers for an empty path. Throws `UsageError` with the field and the remedy. */
export function readMcpConfig(path: string, env: Environment): McpServerConfig[] {
  if (path === '') return []
  const refuse = (detail: string): never => {
    throw new UsageError(`invalid --mcp-config ${path}: ${detail}`)
  }
  return parseMcpConfig(readText(path, refuse), env, refuse)
}

function readText(path: string, refuse: (detail: string) => never): string {
  try {
    const { size } = statSync(path)
    if (size > MAX_CONFIG_BYTES) refuse(`it has ${size} bytes, at most ${MAX_CONFIG_BYTES} are read`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof UsageError) throw error
    const reasons: Readonly<Record<string, string>> = { ENOENT: 'no such file', EISDIR: 'it is a directory' }
    const code = systemCodeOf(error) ?? messageOf(error)
    return refuse(`${reasons[code] ?? code}; give a readable file`)
  }
}

/** The servers in `text`. `refuse` throws an error. Its detail begins with the field. */
export function parseMcpConfig(text: string, env: Environment, refuse: (detail: string) => never): McpServerConfig[] {
  let config: unknown
  try {
    config = JSON.parse(text)
  } catch (error) {
    refuse(`it is not JSON: ${messageOf(error)}`)
  }
  if (!isObject(config) || config.mcpServers === undefined) {
    return refuse('expected {"mcpServers": {"<name>": {"command": ...} or {"url": ...}}}')
  }
  const { mcpServers } = config
  if (!isObject(mcpServers)) return refuse(`mcpServers: expected object of servers, got ${jsonTypeOf(mcpServers)}`)
  const names = Object.keys(mcpServers)
  if (names.length > MAX_SERVERS) refuse(`mcpServers: there are ${names.length}, at most ${MAX_SERVERS} are allowed`)
  return names.flatMap((name) => {
    const fields = new Fields(`mcpServers.${name}`, mcpServers[name], env, refuse)
    if (!SERVER_NAME.test(name)) {
      return fields.refuse('', 'the name must be 1 to 64 letters, digits, "_", "-" or ".", as it stands before the "/"')
    }
    if (name === BUILTIN_SERVER) return fields.refuse('', 'the name is taken by the built-in server; choose another')
    // A tool_name may repeat its category: mcp.x/tool is the tool of the server x.
    if (name.startsWith('mcp.')) return fields.refuse('', 'the name must not begin with "mcp."; choose another')
    return fields.flag('disabled') ? [] : [serverOf(name, fields)]
  })
}

function serverOf(name: string, fields: Fields): McpServerConfig {
  const type = fields.text('type')
  const command = fields.text('command')
  const url = fields.text('url')
  if (type === 'sse') {
    return fields.refuse('type', '"sse" is not supported; give the URL of the streamable HTTP endpoint, type "http"')
  }
  if (type !== undefined && type !== 'stdio' && !HTTP_TYPES.includes(type)) {
    return fields.refuse('type', `expected "stdio" or "http", got ${JSON.stringify(type)}`)
  }
  if ((command === undefined) === (url === undefined)) {
    return fields.refuse('', 'give either "command" (a server to start) or "url" (streamable HTTP)')
  }
  if (command !== undefined) {
    if (type !== undefined && type !== 'stdio')
      return fields.refuse('type', `"${type}" needs "url" instead of "command"`)
    if (command.trim() === '') return fields.refuse('command', 'expected the name or path of a program, got ""')
    const [args, env, cwd] = [fields.texts('args'), fields.textMap('env'), fields.text('cwd')]
    if ([command, ...args, ...Object.entries(env).flat(), cwd ?? ''].some((part) => part.includes('\0'))) {
      return fields.refuse('', 'command, args, env and cwd must not contain NUL characters')
    }
    const odd = Object.keys(env).find((key) => key === '' || key.includes('='))
    if (odd !== undefined) return fields.refuse('env', `${JSON.stringify(odd)} cannot be the name of a variable`)
    return { kind: 'stdio', name, command, args, env, cwd }
  }
  if (type === 'stdio') return fields.refuse('type', '"stdio" needs "command" instead of "url"')
  const parsed = URL.parse(url!)
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol)) {
    return fields.refuse('url', 'expected an http: or https: address, such as http://127.0.0.1:3000/mcp')
  }
  const headers = fields.textMap('headers')
  try {
    new Headers(headers)
  } catch {
    return fields.refuse('headers', 'a name or value is not one that HTTP allows')
  }
  return { kind: 'http', name, url: parsed.href, headers }
}

/**
 * The fields of one server. Checks each field when it is read, and replaces its variables. `null` means absent. This
 * does not use `json/schema-check.ts`, because to compile a schema would add milliseconds to every start.
 */
class Fields {
  readonly #at: string
  readonly #given: Readonly<Record<string, unknown>>
  readonly #env: Environment
  readonly #refuse: (detail: string) => never

  constructor(at: string, given: unknown, env: Environment, refuse: (detail: string) => never) {
    this.#at = at
    this.#env = env
    this.#refuse = refuse
    this.#given = isObject(given) ? given : refuse(`${at}: expected object, got ${jsonTypeOf(given)}`)
  }

  refuse(field: string, detail: string): never {
    return this.#refuse(`${this.#at}${field === '' ? '' : `.${field}`}: ${detail}`)
  }

  flag(field: string): boolean {
    const value = this.#given[field] ?? false
    return typeof value === 'boolean' ? value : this.refuse(field, `expected true or false, got ${jsonTypeOf(value)}`)
  }

  text(field: string): string | undefined {
    const value = this.#given[field] ?? undefined
    return value === undefined ? undefined : this.#textOf(field, value)
  }

  texts(field: string): string[] {
    const value = this.#given[field] ?? []
    if (!Array.isArray(value)) return this.refuse(field, `expected array of strings, got ${jsonTypeOf(value)}`)
    return value.map((member, i) => this.#textOf(`${field}[${i}]`, member))
  }

  textMap(field: string): Record<string, string> {
    const value = this.#given[field] ?? {}
    if (!isObject(value)) return this.refuse(field, `expected object of strings, got ${jsonTypeOf(value)}`)
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, this.#textOf(`${field}.${key}`, member)]),
    )
  }

  #textOf(field: string, value: unknown): string {
    if (typeof value !== 'string') return this.refuse(field, `expected string, got ${jsonTypeOf(value)}`)
    return withVariables(value, this.#env, (name) =>
      this.refuse(field, `the variable ${name} is not set; set it, or write \${${name}:-default}`),
    )
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** `${NAME}` and `${NAME:-default}`, so that a configuration need not contain secrets. */
const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** Replaces all references in `text`. `missing` gets the name of an unset variable without a default. */
const withVariables = (text: string, env: Environment, missing: (name: string) => never): string =>
  text.replace(REFERENCE, (_, name: string, otherwise: string | undefined) => {
    // As in a shell, the default also replaces an empty value.
    const value = otherwise === undefined ? env[name] : env[name] || otherwise
    return value ?? missing(name)
  })
