/** Where hosts keep their lists of MCP servers. Pure. */
import { isAbsolute, join } from 'node:path'

export const SCOPES = ['user', 'project'] as const
export type Scope = (typeof SCOPES)[number]

/** How the file is written. */
export type Form = 'json' | 'toml'

export interface HostPlaces {
  readonly form: Form
  /** The object of the file with the servers. */
  readonly key: string
  /** Path from the directory of a project. Undefined: the host has no such file. */
  readonly project: string | undefined
  /** Undefined: the host has no file that we know. */
  readonly user: ((home: HomeDirectories) => string) | undefined
}

export interface HomeDirectories {
  readonly home: string
  readonly platform: NodeJS.Platform
  readonly env: Readonly<Record<string, string | undefined>>
}

const absolute = (path: string | undefined): string | undefined => (path && isAbsolute(path) ? path : undefined)

export const HOST_PLACES = {
  generic: { form: 'json', key: 'mcpServers', project: undefined, user: undefined },
  claude: {
    form: 'json',
    key: 'mcpServers',
    project: '.mcp.json',
    user: ({ home, env }) => join(absolute(env.CLAUDE_CONFIG_DIR) ?? home, '.claude.json'),
  },
  codex: {
    form: 'toml',
    key: 'mcp_servers',
    project: undefined,
    user: ({ home, env }) => join(absolute(env.CODEX_HOME) ?? join(home, '.codex'), 'config.toml'),
  },
  cursor: {
    form: 'json',
    key: 'mcpServers',
    project: '.cursor/mcp.json',
    user: ({ home }) => join(home, '.cursor', 'mcp.json'),
  },
  vscode: {
    form: 'json',
    key: 'servers',
    project: '.vscode/mcp.json',
    user: ({ home, platform, env }) =>
      platform === 'darwin'
        ? join(home, 'Library', 'Application Support', 'Code', 'User', 'mcp.json')
        : join(absolute(env.XDG_CONFIG_HOME) ?? join(home, '.config'), 'Code', 'User', 'mcp.json'),
  },
} as const satisfies Record<string, HostPlaces>
