/** The action kinds of `adapter.v1`: what each is for, and the other names it goes by. Pure. */
import { ACTION_KINDS, type ActionKind } from '../../shared/contract/adapter-v1.ts'

export type KindCategory = 'os' | 'runtime' | 'mcp' | 'cli-skills' | 'task_graph'

export interface Kind {
  /** The type of the task that it becomes; `task_graph` becomes whatever was submitted. */
  readonly category: KindCategory
  /** What a model reads to choose it. */
  readonly description: string
  /** Other names, in lower case, each with the input that it stands for. */
  readonly aliases?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export const KINDS: Readonly<Record<ActionKind, Kind>> = {
  'os.shell': {
    category: 'os',
    description:
      'Run one program on the machine of the service and get stdout, stderr and exit_code. There is no shell around command and args: no pipes, globs or variables. Only allowed programs run unless the service has the open policy.',
    aliases: { shell: {}, bash: {}, 'terminal.command': {} },
  },
  'os.file': {
    category: 'os',
    description: 'Read, write, append to, delete or look at one file on the machine of the service.',
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
    description: 'Try whether a TCP connection to host:port can be opened.',
    aliases: { tcp: {} },
  },
  'os.sleep': { category: 'os', description: 'Wait for a given time.', aliases: { sleep: {} } },
  'os.noop': { category: 'os', description: 'Do nothing and answer the message.', aliases: { noop: {} } },
  'runtime.command': {
    category: 'runtime',
    description:
      'Run a program through the runtime service: as a process of its own workspace, with limits, sandbox and accounting.',
    aliases: { command: {} },
  },
  'runtime.script': {
    category: 'runtime',
    description:
      'Run a script through the runtime service: as a process of its own workspace, with limits, sandbox and accounting.',
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
      'Submit a graph of tasks at once. Tasks run as soon as those they depend on have succeeded, and beside each other otherwise.',
  },
}

export interface ResolvedKind {
  readonly kind: ActionKind
  /** What the name that was used says about the input. */
  readonly preset: Readonly<Record<string, string>>
}

const byName = new Map<string, ResolvedKind>(
  ACTION_KINDS.flatMap((kind) => {
    const aliases = Object.entries(KINDS[kind].aliases ?? {})
    return [[kind, { kind, preset: {} }], ...aliases.map(([name, preset]) => [name, { kind, preset }] as const)]
  }),
)

/** The kind that goes by `name`, in whatever case; undefined when none does. */
export const resolveKind = (name: string): ResolvedKind | undefined => byName.get(name.toLowerCase())

/** `os.shell` as model providers accept the name of a function: `os_shell`. */
export const functionName = (kind: ActionKind): string => kind.replaceAll('.', '_')
