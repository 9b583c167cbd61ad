/** Every setting of the control service, once: flag, variable, default, unit, range and a sentence. */
import { choice, duration, flag, integer, type SettingValues, text } from '../shared/flags.ts'
import { httpUrl } from '../shared/http-client.ts'
import { hostNames } from '../shared/http-guard.ts'
import { LOG_LEVELS } from '../shared/log.ts'
import { unknownFieldsSetting } from '../shared/unknown-fields-setting.ts'

const HOUR_MS = 3_600_000

export const controlSettings = {
  addr: text({
    variable: 'SERVICE_ADDR',
    default: '127.0.0.1:8080',
    value: 'host:port',
    help: 'Address to listen on; :8080 means all interfaces, port 0 a free port.',
  }),
  dataDir: text({
    variable: 'SERVICE_DATA_DIR',
    default: 'data',
    value: 'directory',
    help: 'Where state.json is kept; made if it does not exist.',
  }),
  maxConcurrency: integer({
    variable: 'SERVICE_MAX_CONCURRENCY',
    default: '10',
    value: 'number',
    min: 1,
    max: 10_000,
    help: 'Attempts that may execute at the same time.',
  }),
  persistInterval: duration({
    variable: 'SERVICE_PERSIST_INTERVAL',
    default: '30s',
    minMs: 10,
    maxMs: 24 * HOUR_MS,
    help: 'Time between two writes of state.json; nothing is written when nothing changed.',
  }),
  shutdownTimeout: duration({
    variable: 'SERVICE_SHUTDOWN_TIMEOUT',
    default: '15s',
    minMs: 0,
    maxMs: HOUR_MS,
    help: 'On SIGTERM running attempts may finish within this time; the rest are ended and run again after a restart.',
  }),
  fileRoot: text({
    variable: 'SERVICE_FILE_ROOT',
    value: 'directory',
    help: 'Confines file tasks (and save_to of http tasks) to this directory. Without it only relative paths are confined, to the working directory.',
  }),
  retention: duration({
    variable: 'SERVICE_RETENTION',
    default: '168h',
    minMs: 0,
    maxMs: 100 * 366 * 24 * HOUR_MS,
    range: '0 keeps for ever',
    help: 'How long the tasks of a graph are kept after the last of them has ended.',
  }),
  maxStoredTasks: integer({
    default: '1000000',
    value: 'number',
    min: 1,
    max: 100_000_000,
    help: 'Tasks that are kept; for more, the oldest ended graphs go first, and none that has not ended.',
  }),
  skillsDir: text({
    variable: 'SERVICE_SKILLS_DIR',
    value: 'directory',
    help: 'Executables in this directory are skills: cli-skills tasks may call each by its file name, whatever the allowlist says. Without it there are none.',
  }),
  runtimeUrl: httpUrl({
    variable: 'SERVICE_RUNTIME_URL',
    default: 'http://127.0.0.1:18080',
    help: 'Base address of the runtime service, which runs the tasks of type runtime.',
  }),
  withRuntime: flag({
    help: 'Start taskmill-runtime (from beside this program, else from PATH) where none answers at --runtime-url, keep it running, and end it with this service. It shares the data directory; where no token is set it has one of its own, in runtime-token there.',
  }),
  runtimeAwayTimeout: duration({
    default: '5m',
    minMs: 0,
    maxMs: 30 * 24 * HOUR_MS,
    help: 'How long the runtime service may be away while it has an attempt; then the attempt has failed, and is ended there once it is back.',
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
    help: 'Largest request body; a larger one is answered 413.',
  }),
  unknownFields: unknownFieldsSetting,
  allowedHost: hostNames({
    variable: 'SERVICE_ALLOWED_HOSTS',
    value: 'name',
    help: 'Name under which the service may be addressed, and web pages may come from, besides addresses and local names.',
  }),
  tokenFile: text({
    value: 'file',
    help: 'File with a token that callers must send as Authorization: Bearer. Without one, access is open.',
  }),
  killGrace: duration({
    default: '2s',
    minMs: 0,
    maxMs: 10 * 60_000,
    help: 'Time between TERM and KILL for processes of a task that timed out, was cancelled or left some behind.',
  }),
  logLevel: choice({
    variable: 'SERVICE_LOG_LEVEL',
    default: 'info',
    choices: LOG_LEVELS,
    help: 'Least severe log lines to write; debug adds every request and every attempt.',
  }),
}

export type ControlConfig = SettingValues<typeof controlSettings>

/** Variables without a flag, for the documentation. */
export const controlVariables = {
  SERVICE_TOKEN: 'The token itself, where --token-file is not given.',
  SERVICE_RUNTIME_TOKEN:
    'The token that the runtime service wants. Without it: the token of this service; for a runtime service that --with-runtime starts, else one in runtime-token of the data directory.',
  SERVICE_RUNTIME_TENANT: 'control_context.tenant of runtime tasks that do not name one.',
  SERVICE_RUNTIME_OWNER: 'control_context.owner of runtime tasks that do not name one.',
  SERVICE_SHELL_POLICY:
    'open lets shell and cli-skills tasks run any command, and shell tasks scripts, for trusted development machines only; anything else means the allowlist.',
} as const
