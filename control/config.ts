/** Every setting of the control service, once: flag, variable, default, unit, range and a sentence. */

import { MOST_ELEMENTS } from '../shared/contract/fan-out.ts'
import { hostNames } from '../shared/http/guard.ts'
import { LOG_LEVELS } from '../shared/logs/log.ts'
import { baseUrl } from '../shared/settings/base-url-setting.ts'
import {
  choice,
  duration,
  Expected,
  flag,
  integer,
  type Setting,
  type SettingValues,
  text,
} from '../shared/settings/flags.ts'
import { logFileSettings } from '../shared/settings/log-file-settings.ts'
import { isRuntimeName, type RuntimeEntry, runtimeEntries } from '../shared/settings/runtime-entry.ts'
import { toolsets } from '../shared/settings/toolsets-setting.ts'
import { unknownFieldsSetting } from '../shared/settings/unknown-fields-setting.ts'

const HOUR_MS = 3_600_000

/** Runtime services by name. */
const runtimeServices = (setting: {
  variable: string
  default: string
  help: string
}): Setting<readonly RuntimeEntry[]> => ({
  ...setting,
  value: 'url',
  repeatable: true,
  separator: ' ',
  parse(given) {
    const entries = runtimeEntries(given)
    return typeof entries === 'string' ? new Expected(entries) : entries
  },
  absent: [],
})

/** Files by the name of a runtime service. */
const filesByRuntime = (setting: {
  help: string
}): Setting<readonly { readonly name: string; readonly path: string }[]> => ({
  ...setting,
  value: 'name=file',
  repeatable: true,
  separator: '\0', // paths may have commas
  parse(given) {
    const files = given.split('\0').map((each) => {
      const [, name = '', path = ''] = /^([^=]*)=(.+)$/s.exec(each) ?? []
      return { name, path }
    })
    const isFile = files.every(({ name }) => isRuntimeName(name))
    return isFile ? files : new Expected('the name of a runtime service and a file, as in gpu-1=FILE')
  },
  absent: [],
})

/** Addresses with passwords: no error of the command line repeats them. Those who use them check them. */
const addresses = (setting: Omit<Setting<readonly string[]>, 'parse' | 'absent' | 'repeatable'>) => ({
  ...{ ...setting, repeatable: true, absent: [] },
  parse: (given: string): readonly string[] => given.split(',').map((address) => address.trim()),
})

/** A text of a certain form. */
const named = (
  form: RegExp,
  setting: Omit<Setting<string>, 'parse' | 'absent'> & { range: string },
): Setting<string> => ({
  ...setting,
  parse: (given) => (form.test(given) ? given : new Expected(setting.range)),
  absent: '',
})

/** What PostgreSQL takes for a name in quotes only: the words of `pg_get_keywords()` with the category R or T. */
const RESERVED = `
  all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
  column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
  current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
  from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
  localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
  returning right select session_user similar some symmetric system_user table tablesample then to trailing true union
  unique user using variadic verbose when where window with`

const SCHEMA_NAME = new RegExp(`^(?!pg_|(${RESERVED.trim().replaceAll(/\s+/g, '|')})$)[a-z_][a-z0-9_]{0,62}$`)

/** Which PostgreSQL, for the service and for `database check`. */
export const databaseSettings = {
  database: addresses({
    variable: 'SERVICE_DATABASE_URLS',
    value: 'url',
    help: 'Address of a PostgreSQL server: postgres://user:password@host:5432/database, with sslmode=, sslrootcert=FILE, prepare=false or host=DIRECTORY (of a Unix socket) after a ?. Give primary and standbys. With a password, use --database-file: others see arguments.',
  }),
  databaseFile: text({
    value: 'file',
    help: 'File with the addresses, one a line; # begins a comment. --database and its variable are ignored.',
  }),
  databaseSchema: named(SCHEMA_NAME, {
    variable: 'SERVICE_DATABASE_SCHEMA',
    default: 'taskmill',
    value: 'name',
    range: '1 to 63 of a-z, 0-9 and _, no reserved word of PostgreSQL',
    help: 'Schema of the tables. Each cluster in a database has its own.',
  }),
}

export const controlSettings = {
  addr: text({
    variable: 'SERVICE_ADDR',
    default: '127.0.0.1:8080',
    value: 'host:port',
    help: 'Address to listen on. :8080 is all interfaces, port 0 a free port, unix:/path a Unix socket for its owner only.',
  }),
  dataDir: text({
    variable: 'SERVICE_DATA_DIR',
    default: 'data',
    value: 'directory',
    help: 'Directory for accepted work. Created if missing. One service per directory.',
  }),
  maxConcurrency: integer({
    variable: 'SERVICE_MAX_CONCURRENCY',
    default: '10',
    value: 'number',
    min: 1,
    max: 10_000,
    help: 'Attempts that execute at the same time.',
  }),
  persistInterval: duration({
    variable: 'SERVICE_PERSIST_INTERVAL',
    default: '30s',
    minMs: 10,
    maxMs: 24 * HOUR_MS,
    help: 'Interval between snapshots, which compact the log and write state.json. Accepted graphs do not wait for it.',
  }),
  shutdownTimeout: duration({
    variable: 'SERVICE_SHUTDOWN_TIMEOUT',
    default: '15s',
    minMs: 0,
    maxMs: HOUR_MS,
    help: 'Time for running attempts to finish after SIGTERM. The rest run again after the restart.',
  }),
  fileRoot: text({
    variable: 'SERVICE_FILE_ROOT',
    value: 'directory',
    help: 'Directory that file tasks, and save_to of http tasks, cannot leave. Without it, only relative paths are bound, to the working directory.',
  }),
  retention: duration({
    variable: 'SERVICE_RETENTION',
    default: '168h',
    minMs: 0,
    maxMs: 100 * 366 * 24 * HOUR_MS,
    range: '0 keeps for ever',
    help: 'How long an ended graph is kept.',
  }),
  maxStoredTasks: integer({
    default: '1000000',
    value: 'number',
    min: 1,
    max: 100_000_000,
    help: 'Stored tasks, of all replicas together. Beyond it, the oldest ended graphs are removed. Where live graphs leave no room, a submission gets 503, or 413 if it has more tasks itself.',
  }),
  maxGraphTasks: integer({
    default: '100000',
    value: 'number',
    min: 1,
    max: 100_000_000,
    help: 'Tasks of one graph as submitted, with those of groups, and those that patches and dynamic tasks add. 413 beyond it; a dynamic task fails.',
  }),
  maxStoredBytes: integer({
    default: String(64 * 1024 * 1024 * 1024),
    value: 'bytes',
    min: 0,
    max: 1024 ** 5,
    range: '0 is no limit',
    help: 'Bytes of results and resolved inputs, of each replica. Beyond it, the oldest ended graphs are removed, but not the one that ended last.',
  }),
  maxGraphResultBytes: integer({
    default: String(1024 * 1024 * 1024),
    value: 'bytes',
    min: 1024,
    max: 1024 ** 5,
    help: 'Bytes of results and resolved inputs of one graph. A task beyond it fails.',
  }),
  eventHistory: integer({
    default: '100000',
    value: 'number',
    min: 1_000,
    max: 10_000_000,
    help: 'Past events that are kept at least. A stream that is resumed from an older one begins with the present state.',
  }),
  maxEventStreams: integer({
    default: '10000',
    value: 'number',
    min: 1,
    max: 100_000,
    help: 'Open event streams. A further one gets 503.',
  }),
  eventKeepAlive: duration({
    default: '15s',
    minMs: 100,
    maxMs: 30_000,
    help: 'Interval between comments in an event stream, for proxies that close idle connections.',
  }),
  slowClientTimeout: duration({
    default: '30s',
    minMs: 1_000,
    maxMs: 50_000,
    help: 'How long a client of an event stream or a followed log may read nothing while its buffer is full.',
  }),
  skillsDir: text({
    variable: 'SERVICE_SKILLS_DIR',
    value: 'directory',
    help: 'Directory of skills: executables that cli-skills tasks may run by file name, regardless of the allowlist.',
  }),
  runtimeUrl: runtimeServices({
    variable: 'SERVICE_RUNTIME_URL',
    default: 'http://127.0.0.1:18080',
    help: 'A runtime service: its base URL (unix:/path for a Unix socket), or name=URL, then labels: gpu-1=http://10.0.0.7:18080,gpu,zone=a. The default name is default. In the variable, spaces separate several.',
  }),
  runtimeTokenFile: filesByRuntime({
    help: 'File with the token of a runtime service of --runtime-url: gpu-1=/etc/taskmill/gpu-1.token. The others get SERVICE_RUNTIME_TOKEN.',
  }),
  withRuntime: flag({
    help: 'Start taskmill-runtime (from the directory of this executable, else PATH) if no runtime service answers, restart it when it exits, and stop it with this service.',
  }),
  runtimeAwayTimeout: duration({
    default: '5m',
    minMs: 0,
    maxMs: 30 * 24 * HOUR_MS,
    help: 'How long a runtime service may be unreachable before its attempts fail. They are killed once it is back.',
  }),
  mcpConfig: text({
    variable: 'SERVICE_MCP_CONFIG',
    value: 'file',
    help: 'JSON file with the MCP servers whose tools mcp tasks may call: {"mcpServers": {name: {command, args, env} or {url, headers}}}.',
  }),
  maxBodyBytes: integer({
    default: String(64 * 1024 * 1024),
    value: 'bytes',
    min: 1024,
    max: 1024 * 1024 * 1024,
    help: 'Size of a request body. A larger one gets 413.',
  }),
  maxReferenceBytes: integer({
    default: String(8 * 1024 * 1024),
    value: 'bytes',
    min: 1,
    max: 64 * 1024 * 1024,
    help: 'Size of a referenced value ($from) as JSON. A task with a larger one fails. What a runtime task gets as content of inputs or as stdin must fit into --max-body-bytes of its runtime service, too.',
  }),
  maxFanOut: integer({
    default: '10000',
    value: 'number',
    min: 1,
    max: MOST_ELEMENTS,
    help: 'Children of a task with for_each or of a group: elements, times tasks of the group. A task with more fails.',
  }),
  secretsDir: text({
    variable: 'SERVICE_SECRETS_DIR',
    value: 'directory',
    help: 'Directory with the secrets of shell, cli-skills, http and mcp tasks and of callbacks, a file each. Other users may not read it. Default: systemd credentials (CREDENTIALS_DIRECTORY). The runtime service of --with-runtime has the same, unless SERVICE_RUNTIME_SECRETS_DIR is set.',
  }),
  secretCommand: text({
    variable: 'SERVICE_SECRET_COMMAND',
    value: 'command',
    help: 'Command that prints the secret {name} if --secrets-dir has no such file, such as "pass show {name}". It runs without a shell, with the environment of this service. The runtime service of --with-runtime has the same, unless SERVICE_RUNTIME_SECRET_COMMAND is set.',
  }),
  secretCommandTtl: duration({
    variable: 'SERVICE_SECRET_COMMAND_TTL',
    default: '5m',
    minMs: 0,
    maxMs: 24 * HOUR_MS,
    help: 'How long what the command printed is kept in memory and used again. A secret that was changed counts after that time.',
  }),
  secretCommandTimeout: duration({
    variable: 'SERVICE_SECRET_COMMAND_TIMEOUT',
    default: '10s',
    minMs: 1,
    maxMs: HOUR_MS,
    help: 'After that time the command is ended, and the attempt fails.',
  }),
  secretsRules: text({
    variable: 'SERVICE_SECRETS_RULES',
    value: 'file',
    help: 'TOML file with a table for each secret that not every task gets, or that requests carry: its tenants, its types, and the hosts that http and mcp tasks and callbacks may send it to. Read again when it changes. Default: the process of every task gets every secret that it names, and no request carries one. The runtime service of --with-runtime has the same, unless SERVICE_RUNTIME_SECRETS_RULES is set.',
  }),
  maxCachedOutcomes: integer({
    default: '10000',
    value: 'n',
    min: 0,
    max: 1_000_000,
    help: 'Keys (cache of a task) under which outcomes are kept. The oldest are forgotten.',
  }),
  maxSchedules: integer({
    default: '1000',
    value: 'n',
    min: 0,
    max: 10_000,
    help: 'Schedules that are kept. A further one gets 409.',
  }),
  schedulesDir: text({
    variable: 'SERVICE_SCHEDULES_DIR',
    value: 'directory',
    help: 'Directory of graph files (YAML, JSON) with a field schedule. Each is a schedule as long as it is there. Who writes there runs tasks. Of replicas that share a database, the directory of the oldest one counts.',
  }),
  mcpToolsets: toolsets({
    variable: 'SERVICE_MCP_TOOLSETS',
    default: 'graphs',
    help: 'Sets of tools that POST /mcp offers to callers that choose none with ?toolsets=.',
  }),
  unknownFields: unknownFieldsSetting,
  allowedHost: hostNames({
    variable: 'SERVICE_ALLOWED_HOSTS',
    value: 'name',
    help: 'Host name to accept in Host and Origin, besides IP addresses and local names.',
  }),
  tokenFile: text({
    value: 'file',
    help: 'File with the token that callers send as Authorization: Bearer. Without it and without --tokens-file, access is open.',
  }),
  tokensFile: text({
    variable: 'SERVICE_TOKENS_FILE',
    value: 'file',
    help: 'JSON file, or TOML (*.toml), with the tokens of callers with names and rights; `taskmill token` changes it. It is read again when it changes. The token of --token-file, if there is one, keeps all rights.',
  }),
  sessionTtl: duration({
    variable: 'SERVICE_SESSION_TTL',
    default: '12h',
    minMs: 60_000,
    maxMs: 7 * 24 * HOUR_MS,
    help: 'How long a browser stays signed in to the dashboard (POST /session). The end of its token, and of the service, ends that sooner.',
  }),
  audit: choice({
    variable: 'SERVICE_AUDIT',
    default: 'callers',
    choices: ['callers', 'all', 'off'],
    help: 'When the service keeps an audit log (GET /audit; audit.ndjson in the data directory, or with --database a table of all replicas) of who asked for what: callers: with --tokens-file; all: always; off: never.',
  }),
  callbackPolicy: choice({
    variable: 'SERVICE_CALLBACK_POLICY',
    default: 'public',
    choices: ['public', 'any'],
    help: 'Addresses that callbacks may go to. public refuses loopback, private, link-local, metadata, reserved and multicast addresses, also behind a name.',
  }),
  httpPolicy: choice({
    variable: 'SERVICE_HTTP_POLICY',
    default: 'any',
    choices: ['public', 'any'],
    help: 'Addresses that http tasks may connect to. public refuses what it refuses for callbacks, also after redirects, and uses no proxy.',
  }),
  callbackSecretFile: text({
    variable: 'SERVICE_CALLBACK_SECRET_FILE',
    value: 'file',
    help: 'File with the secret that signs callbacks (X-Taskmill-Signature).',
  }),
  killGrace: duration({
    default: '2s',
    minMs: 0,
    maxMs: 10 * 60_000,
    help: 'Time between SIGTERM and SIGKILL for a task that times out, is cancelled or leaves processes behind.',
  }),
  otlpEndpoint: text({
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    value: 'url',
    help: 'Base address of an OpenTelemetry collector for traces, such as http://127.0.0.1:4318. /v1/traces is added.',
  }),
  logLevel: choice({
    variable: 'SERVICE_LOG_LEVEL',
    default: 'info',
    choices: LOG_LEVELS,
    help: 'Lowest level of log lines. debug adds every request and every attempt.',
  }),
  ...logFileSettings,
  ...databaseSettings,
  cluster: named(/^[\w.-]{1,63}$/, {
    variable: 'SERVICE_CLUSTER',
    value: 'name',
    range: '1 to 63 letters, digits, dots, hyphens and underscores',
    help: 'With --database: name of the cluster. The first replica with a name gives it to the schema, which then refuses replicas without it.',
  }),
  lease: duration({
    default: '10s',
    minMs: 1_000,
    maxMs: 10 * 60_000,
    help: 'With --database: how long the others wait for a replica that is gone before they take over its graphs.',
  }),
  databaseTimeout: duration({
    default: '30s',
    minMs: 100,
    maxMs: HOUR_MS,
    help: 'With --database: how long a start waits for the database.',
  }),
  advertise: baseUrl({
    help: 'With --database: base URL under which the other replicas reach this one. Default: the address that it listens on, with the host name for all interfaces. Its host name counts as an --allowed-host.',
  }),
  onTakeover: choice({
    default: 'rerun',
    choices: ['rerun', 'fail'],
    help: 'With --database: local attempts (shell, http, file, mcp) of a replica that is gone run again, or their tasks fail with the code internal. Attempts of runtime tasks go on.',
  }),
}

export type ControlConfig = SettingValues<typeof controlSettings>

/** Variables without a flag, for the documentation. */
export const controlVariables = {
  SERVICE_TOKEN: 'The token itself. Ignored with --token-file.',
  SERVICE_RUNTIME_TOKEN:
    'The token of the runtime services of --runtime-url. Added or registered ones get only the token that is given with them. Default: the token of this service; without one, the runtime service of --with-runtime gets a token of its own, in runtime-token of the data directory.',
  SERVICE_RUNTIME_TENANT: 'control_context.tenant for runtime tasks that do not set it.',
  SERVICE_RUNTIME_OWNER: 'control_context.owner for runtime tasks that do not set it.',
  SERVICE_SHELL_POLICY:
    'open turns the command allowlist of shell and cli-skills tasks off, and allows shell scripts. Only for trusted development machines. allowlist (default) keeps it.',
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'Whole address for traces, in place of --otlp-endpoint.',
  OTEL_EXPORTER_OTLP_HEADERS:
    'Headers for the collector: name=value,name=value, percent-encoded. OTEL_EXPORTER_OTLP_TRACES_HEADERS takes precedence.',
  OTEL_EXPORTER_OTLP_TIMEOUT: 'Milliseconds for one request to the collector. Default 10000, at most 60000.',
  OTEL_SERVICE_NAME: 'service.name of the traces. Default taskmill-control.',
  OTEL_TRACES_EXPORTER: 'none turns traces off, as OTEL_SDK_DISABLED=true does.',
  NODE_EXTRA_CA_CERTS:
    'File with certificates (PEM) of further authorities to trust, for callbacks, http tasks and MCP servers.',
} as const
