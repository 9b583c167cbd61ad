/**
 * Configurations that add taskmill to the hosts of MCP servers. Pure.
 *
 * A token is never printed. The configuration refers to the variable with the token, in the syntax of the host.
 */
import { quoted } from './shell-words.ts'

export const HOSTS = ['generic', 'claude', 'codex', 'cursor'] as const
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

const NAME = 'taskmill'
const TOKEN = 'SERVICE_TOKEN'

export function hostConfig(options: HostConfigOptions): HostConfig {
  const { host, transport, hasToken } = options
  return {
    client: host,
    transport,
    ...FORMS[host](options),
    notes: [
      'Nothing was written: merge config into the file, or run the command.',
      ...(hasToken ? [`The token stays in the environment: ${TOKEN} must be set where the host runs.`] : []),
      ...NOTES[host],
    ],
  }
}

type Form = Pick<HostConfig, 'file' | 'config' | 'command'>

const FORMS: Readonly<Record<Host, (options: HostConfigOptions) => Form>> = {
  generic: (options) => ({ file: 'the host’s list of MCP servers', config: servers(options, `\${${TOKEN}}`, 'http') }),
  claude: (options) => ({
    file: '.mcp.json in the project, or ~/.claude.json',
    config: servers(options, `\${${TOKEN}}`, 'http'),
    command: claudeCommand(options),
  }),
  cursor: (options) => ({
    file: '.cursor/mcp.json in the project, or ~/.cursor/mcp.json',
    config: servers(options, `\${env:${TOKEN}}`),
  }),
  codex: (options) => ({ file: '~/.codex/config.toml', config: codexTable(options), command: codexCommand(options) }),
}

const NOTES: Readonly<Record<Host, readonly string[]>> = {
  generic: [],
  claude: [],
  cursor: ['Reload the window afterwards.'],
  codex: ['Restart codex afterwards; /mcp lists the servers.'],
}

/** The form of most hosts. `token` is the host's syntax for the value of the variable. */
function servers({ transport, url, program, hasToken }: HostConfigOptions, token: string, type?: string): object {
  const server =
    transport === 'http'
      ? {
          ...(type !== undefined && { type }),
          url: `${url}/mcp`,
          ...(hasToken && { headers: { Authorization: `Bearer ${token}` } }),
        }
      : { command: program, args: ['mcp'], env: { SERVICE_URL: url, ...(hasToken && { [TOKEN]: token }) } }
  return { mcpServers: { [NAME]: server } }
}

function claudeCommand({ transport, url, program, hasToken }: HostConfigOptions): string {
  if (transport === 'http') {
    const header = hasToken ? ` --header ${quoted(`Authorization: Bearer \${${TOKEN}}`)}` : ''
    return `claude mcp add --transport http ${NAME} ${quoted(`${url}/mcp`)}${header}`
  }
  const token = hasToken ? ` --env ${quoted(`${TOKEN}=\${${TOKEN}}`)}` : ''
  return `claude mcp add ${NAME} --env ${quoted(`SERVICE_URL=${url}`)}${token} -- ${quoted(program)} mcp`
}

function codexTable({ transport, url, program, hasToken }: HostConfigOptions): string {
  const lines =
    transport === 'http'
      ? [`url = ${tomlText(`${url}/mcp`)}`, ...(hasToken ? [`bearer_token_env_var = ${tomlText(TOKEN)}`] : [])]
      : [
          `command = ${tomlText(program)}`,
          'args = ["mcp"]',
          `env = { SERVICE_URL = ${tomlText(url)} }`,
          ...(hasToken ? [`env_vars = [${tomlText(TOKEN)}]`] : []),
        ]
  return `[mcp_servers.${NAME}]\n${lines.join('\n')}\n`
}

function codexCommand({ transport, url, program, hasToken }: HostConfigOptions): string {
  if (transport === 'http') {
    return `codex mcp add ${NAME} --url ${quoted(`${url}/mcp`)}${hasToken ? ` --bearer-token-env-var ${TOKEN}` : ''}`
  }
  return `codex mcp add ${NAME} --env ${quoted(`SERVICE_URL=${url}`)} -- ${quoted(program)} mcp`
}

/** A basic string of TOML, which has the escapes of JSON. */
const tomlText = (text: string): string => JSON.stringify(text)
