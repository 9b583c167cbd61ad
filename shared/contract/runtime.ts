/**
 * Answers of the runtime service about tasks: ids, states, outcomes, plans, events, errors.
 *
 * The schemas document (`description`) and give the types. Answers about the service itself are in `runtime-info.ts`, requests
 * in `runtime-request.ts`. Absent values are left out. Times are RFC 3339 in UTC, with milliseconds.
 */
import type { Static } from '@sinclair/typebox'
import {
  count,
  flag,
  type Immutable,
  maybe,
  namespaceFlags,
  oneOf,
  text,
  textMap,
  texts,
  time,
} from './answer-schema.ts'
import { CAPABILITY_MODES, NetworkRules, SANDBOX_PROFILES } from './runtime-request.ts'
import { RUNTIME_STATUSES } from './runtime-status.ts'
import { Type } from './schema-builder.ts'
import { inputMap, TaskInput } from './task-inputs.ts'

/** Values of `error.code` of a task. */
export const TASK_ERROR_CODES = [
  'timeout',
  'cancelled',
  'exit_nonzero',
  'cpu_limit_exceeded',
  'memory_limit_exceeded',
  'resource_limit_exceeded',
  'launch_failed',
  'sandbox_setup_failed',
  'invalid_input',
  'internal',
] as const
export type TaskErrorCode = (typeof TASK_ERROR_CODES)[number]

/** Values of `error.code` of a refused request. */
export const REFUSAL_CODES = [
  'invalid_input',
  'unsupported_capability',
  'insufficient_resources',
  'resource_limit_exceeded',
  'conflict',
  'permission_denied',
  'unauthenticated',
  'not_found',
  'method_not_allowed',
  'payload_too_large',
  'unavailable',
  'internal',
] as const
export type RefusalCode = (typeof REFUSAL_CODES)[number]

/** Types of events. The list may grow: readers skip unknown types. */
export const EVENT_TYPES = [
  'submitted',
  'accepted',
  'planned',
  'degraded',
  'resource_reserved',
  'inputs_copied',
  'launch_delayed',
  'resource_released',
  'started',
  'kill_requested',
  'timeout_triggered',
  'network_allowed',
  'network_refused',
  'network_unlisted',
  'outputs_not_kept',
  'finished',
  'failed',
  'cancelled',
  'recovered',
] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** The body of every refusal. */
export const ErrorResponse = Type.Object(
  {
    error: Type.Object({
      code: oneOf(REFUSAL_CODES, 'What kind of refusal.'),
      message: text('What is wrong, and the remedy.'),
      details: Type.Unknown({ description: 'More for programs, or null.' }),
    }),
  },
  { title: 'ErrorResponse' },
)
export type ErrorResponse = Static<typeof ErrorResponse>

export const SubmitTaskResponse = Type.Object({
  task_id: text('The id of the task.'),
  handle_id: text('Equal to task_id.'),
  status: Type.Literal('accepted', { description: 'The task is stored and queued.' }),
})
export type SubmitTaskResponse = Static<typeof SubmitTaskResponse>

/** Why a task did not succeed. */
export const ErrorInfo = Type.Object({
  code: oneOf(TASK_ERROR_CODES, 'What kind of failure.'),
  message: text('What happened, in words.'),
  details: maybe(Type.Unknown({ description: 'More for programs.' })),
})
export type ErrorInfo = Static<typeof ErrorInfo>

/** What a task did through the rules of its network. Connections count when they end, bytes at once. */
export const NetworkUsage = Type.Object({
  connections_allowed: count('Connections that the rules allowed, also those that could not be made.'),
  connections_refused: count('Connections that were refused.'),
  bytes_sent: count('Bytes that the task sent.'),
  bytes_received: count('Bytes that it received.'),
})
export type NetworkUsage = Static<typeof NetworkUsage>

/** Resource usage of a task. */
export const ResourceUsage = Type.Object({
  duration_ms: count('Milliseconds from start to end.'),
  user_cpu_ms: maybe(count('Milliseconds of CPU in the program.')),
  system_cpu_ms: maybe(count('Milliseconds of CPU in the kernel.')),
  max_rss_bytes: maybe(count('Largest resident size of one process, in bytes.')),
  memory_peak_bytes: maybe(count('Largest memory of all processes together, in bytes; only with a memory cgroup.')),
  kept_files: maybe(count('Files that match outputs; only with outputs.')),
  kept_bytes: maybe(count('Bytes of these files.')),
  network: maybe(Type.Object(NetworkUsage.properties, { description: 'What it did on the network; only with rules.' })),
})
export type ResourceUsage = Static<typeof ResourceUsage>

const own = namespaceFlags((name) => `Whether ${name} is its own.`)

/** A sandbox as requested with defaults, or as in effect. */
export const PlannedSandbox = Type.Object({
  profile: oneOf(SANDBOX_PROFILES, 'How the task is fenced in.'),
  workspace_subdir: maybe(text('Working directory, relative to the workspace.')),
  rootfs: maybe(text('Directory that is the root.')),
  chroot: flag('Whether rootfs is the root.'),
  network: maybe(
    Type.Union([Type.Literal('none'), Type.Literal('host'), Type.Object(NetworkRules.properties)], {
      description:
        'none: loopback of its own; host: that of the host; an object: rules. As the request has it, or as in effect.',
    }),
  ),
  namespaces: maybe(
    Type.Object(
      { ...own.properties, user: maybe(own.properties.user) },
      { description: 'What the task has of its own, with linux_sandbox. A request may leave user to the host.' },
    ),
  ),
})
export type PlannedSandbox = Static<typeof PlannedSandbox>

/** Which limits are enforced, and by which mechanism. */
export const ResourceEnforcement = Type.Object({
  wall_time_ms: count('Milliseconds until the task is ended.'),
  cpu_time_sec: maybe(count('Seconds of CPU time, where asked for.')),
  cpu_time_enforced: flag('Whether cpu_time_sec holds, by RLIMIT_CPU.'),
  memory_bytes: maybe(count('Bytes of memory, where asked for.')),
  memory_enforced: flag('Whether memory_bytes holds: by a memory cgroup, else as address space by RLIMIT_AS.'),
  pids_max: maybe(count('Processes and threads, where asked for, or where the service limits sandboxes.')),
  pids_enforced: flag('Whether pids_max holds, by a pids cgroup.'),
  disk_bytes: maybe(
    count('Bytes in the workspace, where asked for, or where the service limits tasks. The launcher watches them.'),
  ),
  cgroup_enforced: flag('Whether a cgroup enforces one of these.'),
  oom_detection: flag('Whether an end for want of memory is told apart, as memory_limit_exceeded.'),
})
export type ResourceEnforcement = Static<typeof ResourceEnforcement>

export const ExecutionPlan = Type.Object(
  {
    capability_mode: oneOf(CAPABILITY_MODES, 'What held for this task.'),
    requested_sandbox: PlannedSandbox,
    effective_sandbox: PlannedSandbox,
    resource_enforcement: ResourceEnforcement,
    degraded: flag('Whether anything that was asked for is missing.'),
    fallback_reasons: texts('A sentence for each thing that is missing.'),
    capability_warnings: texts('What is as asked for and still may surprise.'),
  },
  { title: 'ExecutionPlan' },
)
export type ExecutionPlan = Static<typeof ExecutionPlan>

/** The answer of a dry run of POST /api/v1/tasks. */
export const DryRunResponse = Type.Object({
  execution_plan: ExecutionPlan,
  fits: Type.Literal(true, { description: 'Capacity and quota can hold the task. If they cannot, it is refused.' }),
})
export type DryRunResponse = Static<typeof DryRunResponse>

export const Reservation = Type.Object({
  task_slots: count('Places among the running tasks: 1.'),
  memory_bytes: maybe(count('limits.memory_bytes, where given.')),
  pids: maybe(count('limits.pids_max, where given.')),
})
export type Reservation = Static<typeof Reservation>

/** What an accepted task waits for. */
export const WaitingFor = Type.Object({
  resource: oneOf(
    ['task_slots', 'memory_bytes', 'pids', 'sandbox_uid', 'turn'],
    'What is short of its reservation. sandbox_uid: no user id of --sandbox-uids is free for its sandbox. turn: there is room, but a task that came earlier starts first.',
  ),
  tenant: maybe(text('The tenant whose quota is used up. Absent where it is the capacity of the runtime.')),
})
export type WaitingFor = Static<typeof WaitingFor>

/** Paths of a task's files on the machine of the service. */
export const Artifacts = Type.Object({
  task_dir: text('Directory of the task.'),
  request_path: text('The request, with its defaults.'),
  result_path: text('The final status; exists once the task has ended.'),
  stdout_path: text('All of stdout.'),
  stderr_path: text('All of stderr.'),
  script_path: maybe(text('The script, where there is one.')),
})
export type Artifacts = Static<typeof Artifacts>

/** The answer of GET /api/v1/tasks/:id and of a kill. */
export const TaskStatusResponse = Type.Object(
  {
    task_id: text('The id of the task.'),
    handle_id: text('Equal to task_id.'),
    status: oneOf(RUNTIME_STATUSES, 'Ends as success, failed or cancelled.'),
    created_at: time('When it was accepted.'),
    updated_at: time('When its status changed last.'),
    started_at: maybe(time('When its process started.')),
    finished_at: maybe(time('When it ended.')),
    duration_ms: maybe(count('Milliseconds from start to end.')),
    shim_pid: maybe(count('The process of ours that watches over it.')),
    pid: maybe(count('Its process, as the host sees it.')),
    pgid: maybe(count('Its process group.')),
    exit_code: maybe(count('Absent when a signal ended it.')),
    exit_signal: maybe(count('Number of the signal that ended it.')),
    stdout: text('The first limits.stdout_max_bytes of stdout, so far.'),
    stderr: text('The first limits.stderr_max_bytes of stderr, so far.'),
    stdout_truncated: flag('Whether there is more stdout.'),
    stderr_truncated: flag('Whether there is more stderr.'),
    error: maybe(ErrorInfo),
    usage: maybe(ResourceUsage),
    execution_plan: ExecutionPlan,
    reservation: maybe(Reservation),
    waiting_for: maybe(WaitingFor),
    artifacts: Artifacts,
    inputs: maybe(
      inputMap(TaskInput, { description: 'Files of other tasks, by path in the workspace. With sha256 once copied.' }),
    ),
    metadata: textMap('As submitted.'),
  },
  { title: 'TaskStatusResponse' },
)
export type TaskStatusResponse = Static<typeof TaskStatusResponse>

export const EventRecord = Type.Object(
  {
    seq: count('Grows from event to event of a task.'),
    task_id: text('The id of the task.'),
    event_type: text(`What happened: ${EVENT_TYPES.join(', ')}, or a type that is newer than the reader.`),
    timestamp: time('When.'),
    message: text('The same in words.'),
    data: Type.Record(Type.String(), Type.Unknown(), { description: 'More for programs; may be empty.' }),
  },
  { title: 'EventRecord' },
)
export type EventRecord = Static<typeof EventRecord>

/** An entry of a directory in the workspace of a task. */
export const WorkspaceFileEntry = Type.Object({
  name: text('Its name in the directory.'),
  type: oneOf(['file', 'directory', 'symlink', 'other'], 'What it is. Only files and directories can be read.'),
  size: maybe(count('Bytes of a file.')),
})
export type WorkspaceFileEntry = Static<typeof WorkspaceFileEntry>

/** A directory in the workspace of a task. */
export const DirectoryListing = Type.Object(
  {
    path: text('Path below the workspace. Empty for the workspace itself.'),
    entries: Type.Array(WorkspaceFileEntry, { description: 'By name.' }),
    truncated: flag('Whether the directory has more entries.'),
  },
  { title: 'DirectoryListing' },
)
export type DirectoryListing = Immutable<Static<typeof DirectoryListing>>

/** A task in a list, without its output. */
export const TaskSummary = Type.Omit(TaskStatusResponse, ['stdout', 'stderr', 'stdout_truncated', 'stderr_truncated'], {
  title: 'TaskSummary',
})
export type TaskSummary = Static<typeof TaskSummary>

/** The answer of GET /api/v1/tasks. */
export const TaskListResponse = Type.Object({
  tasks: Type.Array(TaskSummary),
  next_cursor: maybe(text('The cursor of the next page; absent on the last.')),
  storage_fault: maybe(
    text(
      'Why the service cannot write, as on a full disk. Until it can, no task starts, and no end of a task is reported. Absent otherwise.',
    ),
  ),
})
export type TaskListResponse = Static<typeof TaskListResponse>
