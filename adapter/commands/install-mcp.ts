/** `taskmill install-mcp`: prints the configuration for an agent's host, and with `--write` puts it into the host's file. */
import { homedir } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { newToken } from '../../shared/http/known-tokens.ts'
import { socketPathOf } from '../../shared/http/socket-address.ts'
import { choice, flag, flagName, text } from '../../shared/settings/flags.ts'
import { toolsets } from '../../shared/settings/toolsets-setting.ts'
import { visibleJson } from '../../shared/text/visible-text.ts'
import { controlClient } from '../client.ts'
import { type Answer, success } from '../envelope.ts'
import {
  AGENT_NAMES,
  type Entry,
  HOSTS,
  type Host,
  type HostConfigOptions,
  hostConfig,
  hostEntry,
  hostNotes,
  mergedEntry,
  NAME,
  tokenIn,
  withoutToken,
} from '../host-config.ts'
import { HOST_PLACES, type HostPlaces, SCOPES, type Scope } from '../host-file/place.ts'
import type { HostFile } from '../host-file/write.ts'
import { lastServices } from '../own-services/record.ts'
import { AGENT_RIGHTS, isAgentToken, isWritable, putAgentToken } from '../tokens-file/agent-token.ts'
import { defineCommand } from './command.ts'

export const installMcp = defineCommand({
  summary:
    'Print the configuration that an MCP host needs to use the control service. With --write, put it into the file.',
  usage:
    '[--client claude|codex|cursor|vscode|generic] [--write [--dry-run]] [--transport http|stdio] [--toolsets graphs,schedules]',
  settings: {
    client: choice({ default: 'generic', choices: HOSTS, help: 'The MCP host to configure.' }),
    transport: choice({
      default: 'auto',
      choices: ['auto', 'http', 'stdio'],
      help: 'http: the host calls the service. stdio: the host starts taskmill mcp, which calls the service. auto: stdio for the services of taskmill up, whose address and token it finds, and for Unix sockets, which hosts cannot call; else http.',
    }),
    toolsets: toolsets({ help: 'Sets of tools that the host gets. Default: those of the service (--mcp-toolsets).' }),
    write: flag({
      help: 'Put the entry into the file of the host, after showing it on standard error. What is there stays; the old content is kept beside it.',
    }),
    dryRun: flag({ help: 'With --write: show it, and write nothing.' }),
    scope: choice({
      default: 'user',
      choices: SCOPES,
      help: 'With --write: for all projects of the user, or for the project in the working directory.',
    }),
    file: text({ value: 'file', help: 'With --write: the file, instead of the usual one of the host.' }),
    noToken: flag({
      help: 'With --write: the agent uses the token of the services of taskmill up, which may do everything. Else it gets one of its own there, which reads, submits, and cancels what it submitted, unless the file is that of a project.',
    }),
  },
  maxArguments: 0,
  async run({ values, service, given, env }): Promise<Answer> {
    const last = service.isOwn || given.has('url') ? undefined : lastServices(env)
    const isUp = service.isOwn || last !== undefined
    const url = last?.url ?? service.url
    const isSocket = socketPathOf(url) !== undefined
    if (isSocket && values.transport === 'http') {
      throw new UsageError('an MCP host cannot call a Unix socket: use --transport stdio')
    }
    const usual = isUp || isSocket ? 'stdio' : 'http'
    const transport = values.transport === 'auto' ? usual : values.transport
    const stateHome = env.XDG_STATE_HOME
    const options: HostConfigOptions = {
      ...{ host: values.client, transport, url, program: process.execPath, isOwn: isUp },
      hasToken: service.token !== undefined,
      toolsets: values.toolsets,
      stateHome: stateHome !== undefined && isAbsolute(stateHome) ? stateHome : undefined,
    }
    for (const name of ['dryRun', 'scope', 'file', 'noToken'] as const) {
      if (!values.write && given.has(name)) throw new UsageError(`--${flagName(name)} is for --write`)
    }
    if (!values.write) return success(hostConfig(options))
    const mayHoldToken = !values.noToken && transport === 'stdio' && (values.scope === 'user' || values.file !== '')
    const known = mayHoldToken && isUp ? lastServices(env)?.tokens_file : undefined
    const tokensFile = known !== undefined && isWritable(known) ? known : undefined
    return success(await write(options, { ...values, tokensFile }, env))
  },
})

interface Wish {
  readonly client: Host
  readonly scope: Scope
  readonly file: string
  readonly dryRun: boolean
  /** Where the agent gets a token of its own. Undefined: it gets none. */
  readonly tokensFile: string | undefined
}

async function write(
  options: HostConfigOptions,
  wish: Wish,
  env: Readonly<Record<string, string | undefined>>,
): Promise<object> {
  const [{ change, wouldChange }, { editedJson }, { editedToml }] = await Promise.all([
    import('../host-file/write.ts'),
    import('../host-file/json-edit.ts'),
    import('../host-file/toml-edit.ts'),
  ])
  const { form, key } = HOST_PLACES[wish.client]
  const { tokensFile } = wish
  const name = AGENT_NAMES[wish.client]
  const file: HostFile = { ...fileOf(wish, env), isSecret: tokensFile !== undefined }
  const made = newToken()
  /** That of the entry if it is good, else the new one. */
  const agentToken = (present: Entry = {}): string | undefined => {
    if (tokensFile === undefined) return undefined
    const token = tokenIn(present)
    return token !== undefined && isAgentToken(tokensFile, name, token) ? token : made
  }
  let entry: Entry = {}
  const put = {
    ...{ key, name: NAME },
    entry: (present: Entry | undefined) => {
      entry = hostEntry({ ...options, agentToken: agentToken(present) })
      return mergedEntry(entry, present)
    },
  }
  const edit = (content: string) => (form === 'toml' ? editedToml(content, put) : editedJson(content, put))
  const isNeeded = wouldChange(file, edit)
  const about = {
    client: wish.client,
    transport: options.transport,
    file: file.path,
    config: { [key]: { [NAME]: withoutToken(entry) } },
    ...(tokensFile !== undefined && { token: { name, rights: AGENT_RIGHTS, tokens_file: tokensFile } }),
  }
  if (isNeeded) show(file.path, about.config)
  if (!isNeeded || wish.dryRun) return { ...about, written: false, needed: isNeeded, notes: [] }
  if (tokensFile !== undefined && tokenIn(entry) === made) {
    await putAgentToken(tokensFile, name, made)
    await untilKnown(options.url, made)
  }
  const { isChanged, backup } = change(file, edit)
  return { ...about, written: isChanged, ...(backup !== undefined && { backup }), notes: hostNotes(options) }
}

/** Milliseconds for the service to read the file again. It looks at it each second. */
const KNOWN_WITHIN_MS = 5_000

const ASK_AGAIN_MS = 100

/** Returns once the service knows the token, so that the agent can start at once; or if it does not answer. */
async function untilKnown(url: string, token: string): Promise<void> {
  const end = performance.now() + KNOWN_WITHIN_MS
  const isRefused = () =>
    controlClient(url, token)
      .call({ method: 'GET', path: '/session', timeoutMs: KNOWN_WITHIN_MS })
      .then(() => false)
      .catch((error) => error instanceof CallFailed && error.statusCode === UNAUTHORIZED)
  while ((await isRefused()) && performance.now() < end) await Bun.sleep(ASK_AGAIN_MS)
}

const UNAUTHORIZED = 401

function show(path: string, config: object): void {
  process.stderr.write(
    `taskmill: ${visibleJson(JSON.stringify(path))} gets:\n${visibleJson(JSON.stringify(config, null, 2))}\n`,
  )
}

const PRIVATE = 0o600
const SHARED = 0o644

/** Throws `UsageError` if the host has no such file. */
function fileOf({ client, scope, file }: Wish, env: Readonly<Record<string, string | undefined>>): HostFile {
  if (file !== '') return { path: resolve(file), within: undefined, mode: PRIVATE }
  const { project, user }: HostPlaces = HOST_PLACES[client]
  if (scope === 'project') {
    if (project === undefined) throw new UsageError(`${client} has no file for a project: name one with --file`)
    return { path: resolve(project), within: process.cwd(), mode: SHARED }
  }
  if (user === undefined) throw new UsageError(`the file of a ${client} host is not known: name it with --file`)
  const home = env.HOME || homedir()
  return { path: user({ home, platform: process.platform, env }), within: undefined, mode: PRIVATE }
}
