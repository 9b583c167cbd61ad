/** All settings of `taskmill-runtime serve`: flag, variable, default, unit, range and help text. */

import type { RuntimeLabels } from '../shared/contract/runtime-names.ts'
import { CAPABILITY_MODES, NETWORKS } from '../shared/contract/runtime-request.ts'
import { NotARule, parseAllowRule, parseRule, type Rule } from '../shared/egress/rule.ts'
import { MAX_RULES } from '../shared/egress/rules.ts'
import { shownUrl } from '../shared/http/shown-url.ts'
import { LOG_LEVELS } from '../shared/logs/log.ts'
import { baseUrl } from '../shared/settings/base-url-setting.ts'
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
  texts,
} from '../shared/settings/flags.ts'
import { logFileSettings } from '../shared/settings/log-file-settings.ts'
import { baseUrlOf, runtimeLabels } from '../shared/settings/runtime-entry.ts'
import { unknownFieldsSetting } from '../shared/settings/unknown-fields-setting.ts'
import { parseTenantQuotas, QUOTA_FORM, type TenantQuotas } from './ledger/quotas.ts'
import { type ServiceAddress, serviceAddressOf } from './plan/authority.ts'
import { CONTROL_ACCESS } from './plan/open-services.ts'

const HOUR_MS = 3_600_000
const CENTURY_SECS = 100 * 366 * 24 * 3_600
const GIB = 1024 ** 3

/** PID_MAX_LIMIT of Linux: the maximum number of processes, and the highest limit of a pids cgroup. */
const MAX_PIDS = 4_194_304

/** The highest user id. 2³² - 1 means no user. */
const MAX_UID = 2 ** 32 - 2

/** The user ids that sandboxes may have, both ends included. */
export interface UidRange {
  readonly first: number
  readonly last: number
}

function uidRangeOf(given: string): UidRange | Expected {
  const [first, last] = (/^(\d{1,10})-(\d{1,10})$/.exec(given) ?? []).slice(1).map(Number)
  return first !== undefined && last !== undefined && first >= 1 && first <= last && last <= MAX_UID
    ? { first, last }
    : new Expected(`two whole numbers from 1 to ${MAX_UID}, the smaller one first, such as 65600-69695`)
}

/** The user ids that sandboxes may have. */
export const uidRange = ({ sandboxUid, sandboxUids }: Pick<ServeConfig, 'sandboxUid' | 'sandboxUids'>): UidRange =>
  sandboxUid === undefined ? sandboxUids : { first: sandboxUid, last: sandboxUid }

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

/** Control refuses the registration of an address with a user: its callers would see the password. */
const advertised = (given: string): string | Expected => {
  const url = baseUrlOf(given)
  if (url !== undefined && shownUrl(url) === url) return url
  return new Expected('an http: or https: address without user and query, such as http://10.0.0.7:18080')
}

const label: Setting<RuntimeLabels> = {
  variable: 'SERVICE_RUNTIME_LABELS',
  help: 'Label to register. gpu is the label gpu without a value.',
  value: 'key=value',
  repeatable: true,
  parse(given) {
    const labels = runtimeLabels(given.split(','))
    return typeof labels === 'string' ? new Expected(labels) : labels
  },
  absent: {},
}

const tenantQuota: Setting<TenantQuotas> = {
  help: 'What a tenant may reserve at one time. A quota reserves nothing by itself. Default: the capacity.',
  value: QUOTA_FORM,
  repeatable: true,
  parse: parseTenantQuotas,
  absent: new Map(),
}

/** Rules for connections, each a flag of its own. */
function rules(help: string, parse: (text: string) => Rule): Setting<readonly Rule[] | undefined> {
  const given = texts({ help, value: 'rule' })
  return {
    ...given,
    parse(text) {
      const all = given.parse(text) as readonly string[]
      if (all.length > MAX_RULES) return new Expected(`at most ${MAX_RULES} rules`)
      try {
        return all.map(parse)
      } catch (error) {
        if (error instanceof NotARule) return new Expected(error.message.replace(/^expected /, ''))
        throw error
      }
    },
    absent: undefined,
  }
}

/** Addresses of services of ours. */
const addresses = (setting: {
  variable: string
  default: string
  help: string
}): Setting<readonly ServiceAddress[]> => ({
  ...list({ ...setting, value: 'address:port' }),
  parse: (given) => {
    const found = given.split(',').map((text) => serviceAddressOf(text.trim()))
    return found.every((one) => one !== undefined)
      ? found
      : new Expected('addresses with ports, such as 10.0.0.5:18081')
  },
  absent: [],
})

export const serveSettings = {
  listenAddr: text({
    variable: 'SERVICE_RUNTIME_LISTEN_ADDR',
    default: '127.0.0.1:18080',
    value: 'host:port',
    help: 'Address to listen on. :18080 is all interfaces, port 0 a free port, unix:/path a Unix socket for its owner only.',
  }),
  dataDir: text({
    default: 'data',
    value: 'directory',
    help: 'Directory for runtime.db and the files of tasks. Created if missing. One service per directory.',
  }),
  maxRunningTasks: integer({
    default: '4',
    value: 'number',
    min: 1,
    max: 10_000,
    help: 'Tasks that run at the same time.',
  }),
  maxQueuedTasks: integer({
    default: '128',
    value: 'number',
    min: 0,
    max: 1_000_000,
    help: 'Length of the queue. A task beyond it gets 429. With 0, a task starts at once or is refused.',
  }),
  terminationGraceMs: integer({
    default: '5000',
    value: 'milliseconds',
    min: 0,
    max: 10 * 60_000,
    help: 'Time between SIGTERM and SIGKILL.',
  }),
  launchRetryMs: integer({
    default: '60000',
    value: 'milliseconds',
    min: 0,
    max: HOUR_MS,
    range: `0 to ${HOUR_MS}, 0 for not at all`,
    help: 'How long a launch that fails with EAGAIN or ENOMEM is retried.',
  }),
  resultRetentionSecs: integer({
    default: '604800',
    value: 'seconds',
    min: 0,
    max: CENTURY_SECS,
    range: '0 keeps for ever',
    help: 'How long an ended task and its files are kept.',
  }),
  gcIntervalMs: integer({
    default: '1000',
    value: 'milliseconds',
    min: 10,
    max: HOUR_MS,
    help: 'Interval between removals of such tasks.',
  }),
  dispatchPollIntervalMs: integer({
    default: '250',
    value: 'milliseconds',
    min: 10,
    max: 60_000,
    help: 'Interval between checks for tasks that can start: a safety net.',
  }),
  cgroupRoot: text({
    value: 'directory',
    help: 'Parent cgroup of tasks. Default: taskmill below the cgroup of the service.',
  }),
  runtimeId: text({
    variable: 'SERVICE_RUNTIME_ID',
    value: 'name',
    help: 'Name of this runtime service in its answers, and at control (--register). Default: the host name.',
  }),
  register: baseUrl({
    variable: 'SERVICE_RUNTIME_REGISTER',
    help: 'Base URL of a control service to register with, which then sends tasks.',
  }),
  advertise: {
    ...baseUrl({
      variable: 'SERVICE_RUNTIME_ADVERTISE',
      help: 'Base URL to register. Default: the address that it listens on, with the host name for all interfaces. Its host name counts as an --allowed-host.',
    }),
    parse: advertised,
  },
  label,
  defaultCapabilityMode: choice({
    variable: 'SERVICE_RUNTIME_DEFAULT_CAPABILITY_MODE',
    default: 'adaptive',
    choices: CAPABILITY_MODES,
    help: 'Default policy.capability_mode, for what the host cannot do: adaptive runs the task without it and reports that, strict refuses the task.',
  }),
  defaultNetwork: choice({
    variable: 'SERVICE_RUNTIME_DEFAULT_NETWORK',
    default: 'none',
    choices: NETWORKS,
    help: 'Default sandbox.network of tasks in linux_sandbox.',
  }),
  egressAllow: rules(
    'Host that tasks with rules may connect to, as in sandbox.network.allow, if their own rules allow it, too. Default: their own rules alone.',
    parseAllowRule,
  ),
  egressDeny: rules('Host that no task with rules may connect to, as in sandbox.network.deny.', parseRule),
  egressCa: text({
    value: 'directory',
    help: 'Directory with the certificate authority that signs for hosts to whose requests secrets are added. Made at the first need, and rotated each year. Only sandboxes trust it. Default: egress-ca in the data directory.',
  }),
  maxEgressConnections: integer({
    default: '4096',
    value: 'number',
    min: 1,
    max: 100_000,
    help: 'Connections of all tasks with rules at one time; fewer if the limit for descriptors is lower.',
  }),
  disableLinuxSandbox: flag({
    variable: 'SERVICE_RUNTIME_DISABLE_LINUX_SANDBOX',
    help: 'Turn linux_sandbox off, as if the host did not support it.',
  }),
  disableCgroup: flag({
    variable: 'SERVICE_RUNTIME_DISABLE_CGROUP',
    help: 'Turn cgroups off, as if the host had none.',
  }),
  capacityMemoryBytes: optionalInteger({
    variable: 'SERVICE_RUNTIME_CAPACITY_MEMORY_BYTES',
    value: 'bytes',
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    help: 'Memory that running tasks may reserve together. Default: that of the machine, or the limit of the cgroup of the service if lower.',
  }),
  capacityPids: optionalInteger({
    variable: 'SERVICE_RUNTIME_CAPACITY_PIDS',
    value: 'number',
    min: 1,
    max: MAX_PIDS,
    help: 'Processes that running tasks may reserve together. Default: the limit of the kernel, or of the cgroup of the service if lower.',
  }),
  tenantQuota,
  maxBodyBytes: integer({
    default: String(16 * 1024 * 1024),
    value: 'bytes',
    min: 1024,
    max: GIB,
    help: 'Size of a request body. A larger one gets 413.',
  }),
  maxOutputBytes: integer({
    default: String(GIB),
    value: 'bytes',
    min: 1024,
    max: 1024 * GIB,
    help: 'Size of the stdout and of the stderr of a task. A task that writes more is ended.',
  }),
  maxKeptFiles: integer({
    default: '10000',
    value: 'number',
    min: 1,
    max: 10_000_000,
    help: 'Files that a task with outputs keeps. A task with more fails.',
  }),
  maxKeptBytes: integer({
    default: String(10 * GIB),
    value: 'bytes',
    min: 1,
    max: 1024 * GIB,
    help: 'Size of these files together. A task with more fails.',
  }),
  maxInputFiles: integer({
    default: '10000',
    value: 'number',
    min: 1,
    max: 100_000,
    help: 'Files and directories of all inputs of a task. A task with more fails.',
  }),
  maxInputBytes: integer({
    default: String(10 * GIB),
    value: 'bytes',
    min: 1,
    max: 1024 * GIB,
    help: 'Size of all inputs of a task. A task with more fails.',
  }),
  maxStagedBytes: integer({
    default: String(20 * GIB),
    value: 'bytes',
    min: 1,
    max: 1024 * GIB,
    help: 'Size of all staged files of other runtime services. Those that were used long ago make room, else further ones get 429.',
  }),
  stagedRetentionSecs: integer({
    default: '86400',
    value: 'seconds',
    min: 1,
    max: CENTURY_SECS,
    help: 'How long a staged file is kept after its last use, unless a waiting task needs it.',
  }),
  sandboxUids: {
    default: '65600-69695',
    value: 'first-last',
    range: `1 to ${MAX_UID}`,
    parse: uidRangeOf,
    absent: { first: 0, last: 0 },
    help: 'User ids of sandboxes of a root service, one each, never root. Pick ids that own no file and no process of the host, and not 65534 (nobody).',
  } satisfies Setting<UidRange>,
  sandboxUid: optionalInteger({
    value: 'uid',
    min: 1,
    max: MAX_UID,
    help: 'As --sandbox-uids with a single id: sandboxes run one at a time.',
  }),
  sandboxPidsMax: integer({
    variable: 'SERVICE_RUNTIME_SANDBOX_PIDS_MAX',
    default: '1024',
    value: 'number',
    min: 0,
    max: MAX_PIDS,
    range: `0 to ${MAX_PIDS}, 0 for no limit`,
    help: 'Default limits.pids_max of tasks in linux_sandbox. Needs a pids cgroup; reserves nothing.',
  }),
  taskDiskBytes: integer({
    variable: 'SERVICE_RUNTIME_TASK_DISK_BYTES',
    default: '0',
    value: 'bytes',
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    range: `0 to ${Number.MAX_SAFE_INTEGER}, 0 for no limit`,
    help: 'Default limits.disk_bytes of tasks.',
  }),
  secretsDir: text({
    variable: 'SERVICE_RUNTIME_SECRETS_DIR',
    value: 'directory',
    help: 'Directory with the secrets of tasks, a file each. Other users may not read it. Default: systemd credentials (CREDENTIALS_DIRECTORY).',
  }),
  secretCommand: text({
    variable: 'SERVICE_RUNTIME_SECRET_COMMAND',
    value: 'command',
    help: 'Command that prints the secret {name} if --secrets-dir has no such file, such as "pass show {name}". It runs without a shell, with the environment of this service.',
  }),
  secretCommandTtlMs: integer({
    variable: 'SERVICE_RUNTIME_SECRET_COMMAND_TTL_MS',
    default: '300000',
    value: 'ms',
    min: 0,
    max: 24 * HOUR_MS,
    help: 'How long what the command printed is kept in memory and used again. A secret that was changed counts after that time.',
  }),
  secretCommandTimeoutMs: integer({
    variable: 'SERVICE_RUNTIME_SECRET_COMMAND_TIMEOUT_MS',
    default: '10000',
    value: 'ms',
    min: 1,
    max: HOUR_MS,
    help: 'After that time the command is ended, and the task fails.',
  }),
  secretsRules: text({
    variable: 'SERVICE_RUNTIME_SECRETS_RULES',
    value: 'file',
    help: 'TOML file with a table for each secret that not every task gets: its tenants and its types. Read again when it changes. Default: every task gets every secret that it names.',
  }),
  secretsExcept: texts({
    value: 'file',
    help: 'File in the directory of the secrets that no task gets, besides those that this service reads itself.',
  }),
  sandboxMask: paths('Host path to hide from tasks in linux_sandbox.'),
  sandboxExpose: paths('Host path below a hidden one to show to tasks in linux_sandbox, read-only.'),
  unknownFields: unknownFieldsSetting,
  allowedHost: list({
    value: 'name',
    help: 'Host name to accept in Host and Origin, besides IP addresses and local names.',
  }),
  tokenFile: text({
    value: 'file',
    help: 'File with the token that callers send as Authorization: Bearer. Without it and without --tokens-file, access is open.',
  }),
  tokensFile: text({
    variable: 'SERVICE_RUNTIME_TOKENS_FILE',
    value: 'file',
    help: 'JSON file, or TOML (*.toml), with the tokens of callers with names and rights; `taskmill token` changes it. It is read again when it changes. The token of --token-file, which control has, keeps all rights.',
  }),
  controlAccess: choice({
    variable: 'SERVICE_CONTROL_ACCESS',
    default: 'unknown',
    choices: CONTROL_ACCESS,
    help: 'Whether the control service on this machine requires a token. Unless it does, plans of tasks with the host network warn. taskmill-control --with-runtime sets it.',
  }),
  controlAddr: addresses({
    variable: 'SERVICE_CONTROL_ADDR',
    default: '127.0.0.1:8080',
    help: 'Address of a control service, which no rule of a task reaches. With a loopback address, or none, no address of this machine is reached at its port. taskmill-control --with-runtime sets it.',
  }),
  logLevel: choice({
    variable: 'SERVICE_LOG_LEVEL',
    default: 'info',
    choices: LOG_LEVELS,
    help: 'Lowest level of log lines. debug adds every request.',
  }),
  ...logFileSettings,
}

export type ServeConfig = SettingValues<typeof serveSettings>

/** Variables without a flag, for the documentation. */
export const serveVariables = {
  SERVICE_TOKEN: 'The token itself. Ignored with --token-file.',
  NODE_EXTRA_CA_CERTS:
    'File with certificates (PEM) of further authorities to trust, for hosts to whose requests secrets are added.',
  SERVICE_CONTROL_TOKEN: 'The token of the control service of --register. Default: the token of this service.',
} as const
