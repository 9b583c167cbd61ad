/** Every setting of `taskmill-runtime serve`, once: flag, variable, default, unit, range and a sentence. */
import { CAPABILITY_MODES } from '../shared/contract/runtime-request.ts'
import {
  choice,
  Expected,
  flag,
  integer,
  list,
  optionalInteger,
  type Setting,
  type SettingValues,
  text,
} from '../shared/flags.ts'
import { LOG_LEVELS } from '../shared/log.ts'
import { unknownFieldsSetting } from '../shared/unknown-fields-setting.ts'
import { CONTROL_ACCESS } from './intake/host-network.ts'
import { parseTenantQuotas, QUOTA_FORM, type TenantQuotas } from './ledger/quotas.ts'

const HOUR_MS = 3_600_000
const CENTURY_SECS = 100 * 366 * 24 * 3_600
const GIB = 1024 ** 3

/** The most processes that Linux can be told to count (PID_MAX_LIMIT), and the most that a pids cgroup takes as its limit. */
const MAX_PIDS = 4_194_304

/** The highest user id: the one above it means none. */
const MAX_UID = 2 ** 32 - 2

const paths = (help: string): Setting<readonly string[]> => ({
  help,
  value: 'path',
  repeatable: true,
  parse: (given) => {
    const found = given.split(',')
    return found.every((path) => path.startsWith('/')) ? found : new Expected('absolute paths without commas')
  },
  absent: [],
})

const tenantQuota: Setting<TenantQuotas> = {
  help: 'What a tenant may have reserved at a time. Others may use what it leaves; without a quota it may take all there is.',
  value: QUOTA_FORM,
  repeatable: true,
  parse: parseTenantQuotas,
  absent: new Map(),
}

export const serveSettings = {
  listenAddr: text({
    variable: 'SERVICE_RUNTIME_LISTEN_ADDR',
    default: '127.0.0.1:18080',
    value: 'host:port',
    help: 'Address to listen on; :18080 means all interfaces, port 0 a free port.',
  }),
  dataDir: text({
    default: 'data',
    value: 'directory',
    help: 'Where runtime.db and the files of tasks are kept; made if it does not exist.',
  }),
  maxRunningTasks: integer({
    default: '4',
    value: 'number',
    min: 1,
    max: 10_000,
    help: 'Tasks that may run at the same time.',
  }),
  maxQueuedTasks: integer({
    default: '128',
    value: 'number',
    min: 0,
    max: 1_000_000,
    help: 'Tasks that may wait to run; a further one is answered 429. With 0 a task starts at once or is refused.',
  }),
  terminationGraceMs: integer({
    default: '5000',
    value: 'milliseconds',
    min: 0,
    max: 10 * 60_000,
    help: 'Time between TERM and KILL for a task that is killed or has run out of wall time.',
  }),
  launchRetryMs: integer({
    default: '60000',
    value: 'milliseconds',
    min: 0,
    max: HOUR_MS,
    range: `0 to ${HOUR_MS}, 0 for not at all`,
    help: 'How long to retry a launch that fails with EAGAIN or ENOMEM. The task fails after that.',
  }),
  resultRetentionSecs: integer({
    default: '604800',
    value: 'seconds',
    min: 0,
    max: CENTURY_SECS,
    range: '0 keeps for ever',
    help: 'How long a task and its files are kept after it has ended.',
  }),
  gcIntervalMs: integer({
    default: '1000',
    value: 'milliseconds',
    min: 10,
    max: HOUR_MS,
    help: 'Time between two looks for tasks that are kept no longer.',
  }),
  dispatchPollIntervalMs: integer({
    default: '250',
    value: 'milliseconds',
    min: 10,
    max: 60_000,
    help: 'Time between two looks for tasks that could start. A safety net: a task starts as soon as there is room for it.',
  }),
  cgroupRoot: text({
    value: 'directory',
    help: 'Cgroup below which those of tasks are made. Without it: taskmill below the cgroup of the service.',
  }),
  runtimeId: text({
    variable: 'SERVICE_RUNTIME_ID',
    value: 'name',
    help: 'Name of this runtime in its answers. Without it: the name of the host.',
  }),
  defaultCapabilityMode: choice({
    variable: 'SERVICE_RUNTIME_DEFAULT_CAPABILITY_MODE',
    default: 'adaptive',
    choices: CAPABILITY_MODES,
    help: 'For tasks that ask for what the host lacks and do not say: adaptive does without and reports it, strict refuses the task.',
  }),
  disableLinuxSandbox: flag({
    variable: 'SERVICE_RUNTIME_DISABLE_LINUX_SANDBOX',
    help: 'Do without the profile linux_sandbox, as if the host did not have it.',
  }),
  disableCgroup: flag({
    variable: 'SERVICE_RUNTIME_DISABLE_CGROUP',
    help: 'Do without cgroups, as if the host did not have them.',
  }),
  capacityMemoryBytes: optionalInteger({
    variable: 'SERVICE_RUNTIME_CAPACITY_MEMORY_BYTES',
    value: 'bytes',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    help: 'Memory that tasks may have reserved together. Without it: what the machine has and the cgroup of the service may use.',
  }),
  capacityPids: optionalInteger({
    variable: 'SERVICE_RUNTIME_CAPACITY_PIDS',
    value: 'number',
    min: 1,
    max: MAX_PIDS,
    help: 'Processes that tasks may have reserved together. Without it: what the kernel and the cgroup of the service allow.',
  }),
  tenantQuota,
  maxBodyBytes: integer({
    default: String(16 * 1024 * 1024),
    value: 'bytes',
    min: 1024,
    max: GIB,
    help: 'Largest request body; a larger one is answered 413.',
  }),
  maxOutputBytes: integer({
    default: String(GIB),
    value: 'bytes',
    min: 1024,
    max: 1024 * GIB,
    help: 'Largest stdout, and largest stderr, of a task; one that writes more is ended.',
  }),
  sandboxUid: integer({
    default: '65531',
    value: 'uid',
    min: 1,
    max: MAX_UID,
    help: 'User of tasks in linux_sandbox, where the service is root. Never root, and no user that owns files of the host: 65534 (nobody) owns what unmapped users and squashing file servers leave.',
  }),
  sandboxPidsMax: integer({
    variable: 'SERVICE_RUNTIME_SANDBOX_PIDS_MAX',
    default: '1024',
    value: 'number',
    min: 0,
    max: MAX_PIDS,
    range: `0 to ${MAX_PIDS}, 0 for no limit`,
    help: 'Default pids_max of tasks in linux_sandbox. Reserves nothing; not enforced without a pids cgroup.',
  }),
  sandboxMask: paths('Path of the host that tasks in linux_sandbox do not see.'),
  sandboxExpose: paths('Path below a hidden one that tasks in linux_sandbox see after all, read-only.'),
  unknownFields: unknownFieldsSetting,
  allowedHost: list({
    value: 'name',
    help: 'Name under which the service may be addressed, and web pages may come from, besides addresses and local names.',
  }),
  tokenFile: text({
    value: 'file',
    help: 'File with a token that callers must send as Authorization: Bearer. Without one, access is open.',
  }),
  controlAccess: choice({
    variable: 'SERVICE_CONTROL_ACCESS',
    default: 'unknown',
    choices: CONTROL_ACCESS,
    help: 'Whether the control service on this machine requires a token. Plans of tasks that share the network of the host warn unless it is token. taskmill-control --with-runtime sets it.',
  }),
  logLevel: choice({
    variable: 'SERVICE_LOG_LEVEL',
    default: 'info',
    choices: LOG_LEVELS,
    help: 'Least severe log lines to write; debug adds every request.',
  }),
}

export type ServeConfig = SettingValues<typeof serveSettings>

/** Variables without a flag, for the documentation. */
export const serveVariables = {
  SERVICE_TOKEN: 'The token itself, where --token-file is not given.',
} as const
