/** The action kinds of `adapter.v1`, with their descriptions and aliases. Pure. */
import { ACTION_KINDS, type ActionKind } from '../../shared/contract/adapter-v1.ts'

export type KindCategory = 'os' | 'runtime' | 'mcp' | 'cli-skills' | 'task_graph'

export interface Kind {
  /** Type of the task that the action becomes. An action of `task_graph` becomes the submitted tasks. */
  readonly category: KindCategory
  /** For a model that chooses between the kinds. */
  readonly description: string
  /** Alias in lower case to the input fields that it presets. */
  readonly aliases?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export const KINDS: Readonly<Record<ActionKind, Kind>> = {
  'os.shell': {
    category: 'os',
    description:
      'Run one program on the machine of the service and get stdout, stderr and exit_code. The program is started without a shell: no pipes, globs or variables. Unless the service has the open policy, only allowed programs run.',
    aliases: { shell: {}, bash: {}, 'terminal.command': {} },
  },
  'os.file': {
    category: 'os',
    description: 'Read, write, append to, delete or stat one file on the machine of the service.',
    aliases: { 'file.read': { action: 'read' }, 'file.write': { action: 'write' } },
  },
  'os.http': {
    category: 'os',
    description: 'Make one HTTP request and get status_code, headers and body. A status of 400 or more is a failure.',
    aliases: { 'http.request': {} },
  },
  'os.dns': {
    category: 'os',
    description: 'Look up the addresses or the TXT, CNAME or MX records of a name.',
    aliases: { dns: {} },
  },
  'os.tcp': {
    category: 'os',
    description: 'Check whether a TCP connection to host:port can be opened.',
    aliases: { tcp: {} },
  },
  'os.sleep': { category: 'os', description: 'Wait for a given time.', aliases: { sleep: {} } },
  'os.noop': { category: 'os', description: 'Do nothing and return the message.', aliases: { noop: {} } },
  'runtime.command': {
    category: 'runtime',
    description:
      'Run a program in the runtime service: in a workspace of its own, with limits, sandbox and accounting.',
    aliases: { command: {} },
  },
  'runtime.script': {
    category: 'runtime',
    description: 'Run a script in the runtime service: in a workspace of its own, with limits, sandbox and accounting.',
    aliases: { script: {} },
  },
  'mcp.call': { category: 'mcp', description: 'Call a tool of an MCP server that the service is connected to.' },
  'cli.run': {
    category: 'cli-skills',
    description: 'Run a local command-line tool, or a skill of the service, and get its output and exit_code.',
  },
  'task_graph.submit': {
    category: 'task_graph',
    description:
      'Submit a graph of tasks. A task runs as soon as all tasks in its depends_on have succeeded. Independent tasks run at the same time.',
  },
}

export interface ResolvedKind {
  readonly kind: ActionKind
  /** Input fields that the alias presets. */
  readonly preset: Readonly<Record<string, string>>
}

const byName = new Map<string, ResolvedKind>(
  ACTION_KINDS.flatMap((kind) => {
    const aliases = Object.entries(KINDS[kind].aliases ?? {})
    return [[kind, { kind, preset: {} }], ...aliases.map(([name, preset]) => [name, { kind, preset }] as const)]
  }),
)

/** The kind with this name or alias, in upper or lower case. Undefined if there is none. */
export const resolveKind = (name: string): ResolvedKind | undefined => byName.get(name.toLowerCase())

/** Function name of the kind for model providers, which accept no dots: `os_shell` for `os.shell`. */
export const functionName = (kind: ActionKind): string => kind.replaceAll('.', '_')
