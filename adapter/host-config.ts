/**
 * Configurations that add taskmill to the hosts of MCP servers. Pure.
 *
 * A configuration refers to the variable with the token, in the syntax of the host. The services of `taskmill up` need no
 * address: over stdio, `taskmill mcp` finds them. It finds their token, too, unless the agent has one of its own, which then stands
 * in the configuration itself.
 */
import { type Toolset, toolsetQuery } from '../shared/contract/toolsets.ts'
import { HOST_PLACES } from './host-file/place.ts'
import { shownTable } from './host-file/toml-edit.ts'
import { commandLine, quoted } from './shell-words.ts'

export const HOSTS = ['generic', 'claude', 'codex', 'cursor', 'vscode'] as const
export type Host = (typeof HOSTS)[number]

export interface HostConfigOptions {
  readonly host: Host
  readonly transport: 'http' | 'stdio'
  /** Base URL of the control service, without a final slash. */
  readonly url: string
  /** Path of this executable. */
  readonly program: string
  /** Whether the service requires a token. */
  readonly hasToken: boolean
  /** Sets of tools. Empty: those of the service. */
  readonly toolsets: readonly Toolset[]
  /** Whether `taskmill up` started the service. */
  readonly isOwn: boolean
  /** The token of the agent for these services. Undefined: it uses that of the user. */
  readonly agentToken?: string | undefined
  /** XDG_STATE_HOME, with which `taskmill mcp` finds that service. Undefined: it is in its usual place. */
  readonly stateHome: string | undefined
}

export interface HostConfig {
  readonly client: Host
  readonly transport: 'http' | 'stdio'
  /** The host's configuration file. */
  readonly file: string
  /** Its new content: a JSON value to merge, or the text of a TOML table. */
  readonly config: object | string
  /** The host's command that does the same. */
  readonly command?: string
  readonly notes: readonly string[]
}

export type Entry = Readonly<Record<string, unknown>>

export const NAME = 'taskmill'
const TOKEN = 'SERVICE_TOKEN'

/** Names of the tokens of agents. */
export const AGENT_NAMES: Readonly<Record<Host, string>> = {
  generic: 'agent',
  claude: 'claude-code',
  codex: 'codex',
  cursor: 'cursor',
  vscode: 'vscode',
}

/** The token that stands in an entry; undefined if it has none, or refers to a variable. */
export const tokenIn = ({ env }: Entry): string | undefined => {
  const token = isRecord(env) ? env[TOKEN] : undefined
  return typeof token === 'string' && !token.startsWith('$') ? token : undefined
}

/** The entry for people to see. */
export const withoutToken = (entry: Entry): Entry =>
  tokenIn(entry) === undefined ? entry : { ...entry, env: { ...(entry.env as object), [TOKEN]: '***' } }

/** The answer of `install-mcp` without `--write`. */
export function hostConfig(options: HostConfigOptions): HostConfig {
  const { host, transport } = options
  const { form, key } = HOST_PLACES[host]
  const entry = hostEntry(options)
  const command = COMMANDS[host]?.(options)
  return {
    client: host,
    transport,
    file: FILES[host],
    config: form === 'toml' ? shownTable(`${key}.${NAME}`, entry) : { [key]: { [NAME]: entry } },
    ...(command !== undefined && { command }),
    notes: ['Nothing was written: merge config into the file, run the command, or add --write.', ...hostNotes(options)],
  }
}

export const hostNotes = (options: HostConfigOptions): string[] => [
  ...(needsToken(options) ? [`The token stays in the environment: ${TOKEN} must be set where the host runs.`] : []),
  ...NOTES[options.host],
]

/** The fields of an entry that are ours. Other fields of the user are kept. */
const OUR_FIELDS = ['type', 'url', 'headers', 'command', 'args', 'bearer_token_env_var', 'env_vars', 'env'] as const
const OUR_VARIABLES = ['SERVICE_URL', TOKEN, 'XDG_STATE_HOME'] as const

/** `entry` with the fields and variables that the user added to the present one. */
export function mergedEntry(entry: Entry, present: Entry | undefined): Record<string, unknown> {
  if (present === undefined) return { ...entry }
  const added = without(present, OUR_FIELDS)
  const env = {
    ...(isRecord(present.env) && without(present.env, OUR_VARIABLES)),
    ...(entry.env as object | undefined),
  }
  // An environment means something only to a server that the host starts.
  const hasEnv = 'command' in entry && Object.keys(env).length > 0
  return { ...without(entry, ['env']), ...(hasEnv && { env }), ...added }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const without = (object: Entry, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

/** `taskmill mcp` finds the token of the services that `taskmill up` started. A host that calls them itself does not. */
const needsToken = ({ hasToken, isOwn, transport }: HostConfigOptions): boolean =>
  hasToken && !(isOwn && transport === 'stdio')

/** The entry of taskmill in the list of the host. */
export function hostEntry(options: HostConfigOptions): Entry {
  const { host, transport, program } = options
  const token = TOKEN_SYNTAX[host]
  if (transport === 'http') {
    const auth = host === 'codex' ? { bearer_token_env_var: TOKEN } : { headers: { Authorization: `Bearer ${token}` } }
    const type = HTTP_TYPES.includes(host) ? { type: 'http' } : {}
    return { ...type, url: endpoint(options), ...(needsToken(options) && auth) }
  }
  const env = variables(options, host === 'codex' ? undefined : token)
  return {
    ...(host === 'vscode' && { type: 'stdio' }),
    ...{ command: program, args: bridgeArguments(options) },
    ...(Object.keys(env).length > 0 && { env }),
    ...(host === 'codex' && needsToken(options) && { env_vars: [TOKEN] }),
  }
}

const endpoint = ({ url, toolsets }: HostConfigOptions): string => `${url}/mcp${toolsetQuery(toolsets)}`

const bridgeArguments = ({ toolsets }: HostConfigOptions): string[] =>
  toolsets.length === 0 ? ['mcp'] : ['mcp', '--toolsets', toolsets.join(',')]

/** Hosts whose entries name the transport. */
const HTTP_TYPES: readonly Host[] = ['generic', 'claude', 'vscode']

/** How a host refers to the value of the variable with the token. Codex takes the name of the variable instead. */
const TOKEN_SYNTAX: Readonly<Record<Host, string>> = {
  generic: `\${${TOKEN}}`,
  claude: `\${${TOKEN}}`,
  codex: '',
  cursor: `\${env:${TOKEN}}`,
  vscode: `\${env:${TOKEN}}`,
}

/** The variables of `taskmill mcp`. */
function variables(options: HostConfigOptions, token?: string): Record<string, string> {
  const { url, isOwn, stateHome, hasToken, agentToken } = options
  if (isOwn) {
    return {
      ...(stateHome !== undefined && { XDG_STATE_HOME: stateHome }),
      ...(agentToken !== undefined && { [TOKEN]: agentToken }),
    }
  }
  return { SERVICE_URL: url, ...(hasToken && token !== undefined && { [TOKEN]: token }) }
}

const FILES: Readonly<Record<Host, string>> = {
  generic: 'the host’s list of MCP servers',
  claude: '.mcp.json in the project, or ~/.claude.json',
  cursor: '.cursor/mcp.json in the project, or ~/.cursor/mcp.json',
  codex: '~/.codex/config.toml',
  vscode: '.vscode/mcp.json in the project, or mcp.json of the user profile',
}

const NOTES: Readonly<Record<Host, readonly string[]>> = {
  generic: [],
  claude: [],
  cursor: ['Reload the window afterwards.'],
  codex: ['Restart codex afterwards; /mcp lists the servers.'],
  vscode: ['The command "MCP: List Servers" starts it.'],
}

/** The hosts' own commands. */
const COMMANDS: Readonly<Partial<Record<Host, (options: HostConfigOptions) => string>>> = {
  claude(options) {
    const { transport, program } = options
    const token = needsToken(options)
    if (transport === 'http') {
      const header = token ? ` --header ${quoted(`Authorization: Bearer \${${TOKEN}}`)}` : ''
      return `claude mcp add --transport http ${NAME} ${quoted(endpoint(options))}${header}`
    }
    return `claude mcp add ${NAME}${envFlags(variables(options, TOKEN_SYNTAX.claude))} -- ${commandLine(program, ...bridgeArguments(options))}`
  },
  codex(options) {
    const { transport, program } = options
    if (transport === 'http') {
      const token = needsToken(options) ? ` --bearer-token-env-var ${TOKEN}` : ''
      return `codex mcp add ${NAME} --url ${quoted(endpoint(options))}${token}`
    }
    return `codex mcp add ${NAME}${envFlags(variables(options))} -- ${commandLine(program, ...bridgeArguments(options))}`
  },
}

const envFlags = (env: Readonly<Record<string, string>>): string =>
  Object.entries(env)
    .map(([name, value]) => ` --env ${quoted(`${name}=${value}`)}`)
    .join('')
