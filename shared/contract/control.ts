/**
 * Requests and answers of the control service: POST /tasks, GET /tasks, cancel, health and metrics.
 *
 * These schemas validate, document (`description`, `expected`) and give the TypeScript types. `expected` completes the
 * sentence `tasks[3].depends_on: expected array of strings`. A `null` in an optional field means absent.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { count, flag, type Immutable, maybe, oneOf, text, textMap, texts, time } from './answer-schema.ts'
import { Cache, MAX_CACHE_KEY_CHARACTERS, MAX_CACHE_TTL_MS } from './cache.ts'
import { CALLBACK_EVENTS, GraphCallback } from './callbacks.ts'
import { RUN_IFS } from './run-if.ts'
import { MAX_SECRETS, secretMap } from './secrets.ts'
import { stringMap } from './string-map.ts'
import { TASK_STATUSES } from './task-status.ts'
import { Waiting } from './waiting.ts'

/** Values of `runtime.error.code`: why a task did not succeed. */
export const ERROR_CODES = [
  'unknown',
  'invalid_input',
  'launch_failed',
  'timeout',
  'cancelled',
  'memory_limit_exceeded',
  'cpu_limit_exceeded',
  'resource_limit_exceeded',
  'sandbox_setup_failed',
  'exit_nonzero',
  'denied',
  'not_found',
  'external_failure',
  'internal',
] as const
export type ErrorCode = (typeof ERROR_CODES)[number]

const orNull = <T extends TSchema>(schema: T, expected: string, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { expected, description }))

/** The limit of the specification's `int64`, as exact as JavaScript can compare. */
const INT64_MAX = 2 ** 63

/** The condition of a task. `control/graph/when.ts` checks the rest. */
export const When = Type.Object({
  $from: Type.String({ expected: 'string', description: 'Id of a task that this one depends on.' }),
  path: Type.Optional(Type.Unknown({ description: 'JSON Pointer into its record. Default /result.' })),
  default: Type.Optional(Type.Unknown({ description: 'The value if the record has none.' })),
  as: Type.Optional(Type.Unknown({ description: 'Form of the value: text, json or lines.' })),
  equals: Type.Optional(Type.Unknown({ description: 'Met if the value is equal to this one.' })),
  not: Type.Optional(Type.Unknown({ description: 'Met if the value is not equal to this one.' })),
  in: Type.Optional(Type.Unknown({ description: 'Met if the value is equal to one of this list.' })),
  matches: Type.Optional(
    Type.Unknown({ description: 'Met if the text matches: * stands for any characters, ? for one.' }),
  ),
})

/** Codes in `retry_on`. Repeated ones mean nothing. */
export const MAX_RETRY_CODES = 100

/** Milliseconds of a wait between two attempts. */
export const MAX_BACKOFF_MS = 24 * 60 * 60 * 1_000

export const MAX_BACKOFF_FACTOR = 100

/** The waits between attempts, as submitted. */
export const Backoff = Type.Object(
  {
    initial_ms: orNull(
      Type.Integer({ minimum: 0, maximum: MAX_BACKOFF_MS }),
      `integer from 0 to ${MAX_BACKOFF_MS}`,
      'Milliseconds before the second attempt. Default 100.',
    ),
    factor: orNull(
      Type.Number({ minimum: 1, maximum: MAX_BACKOFF_FACTOR }),
      `number from 1 to ${MAX_BACKOFF_FACTOR}`,
      'Each further wait is so many times the one before. Default 2.',
    ),
    max_ms: orNull(
      Type.Integer({ minimum: 0, maximum: MAX_BACKOFF_MS }),
      `integer from 0 to ${MAX_BACKOFF_MS}`,
      'Milliseconds of the longest wait. Default 10000.',
    ),
    jitter: orNull(
      Type.Number({ minimum: 0, maximum: 1 }),
      'number from 0 to 1',
      'Each wait is shorter by a random part of it, at most this one. Default 0.',
    ),
  },
  { additionalProperties: false },
)
export type Backoff = Immutable<Static<typeof Backoff>>

/** A submitted task. Later checks cover empty `id` and `type`, and the rules for `retry`. */
export const TaskInput = Type.Object({
  id: orNull(Type.String(), 'string', 'Non-empty and unique within the graph.'),
  type: orNull(
    Type.String(),
    'string',
    'The executor: a category (os), a legacy type (shell, file, http ...), or approval: a task that waits until somebody approves or rejects it.',
  ),
  tool_name: orNull(Type.String(), 'string', 'The tool of the category: shell, file, http, dns, tcp, sleep, noop.'),
  params: Type.Optional(
    Type.Unknown({
      description:
        'Parameters of the executor. In them {"$from": task id, "path", "default", "as"} is a value of the record of a task before this one (path: JSON Pointer, default /result; as: text, json, lines), {"$param": name} a parameter of the graph, {"$literal": value} value itself.',
    }),
  ),
  input: Type.Optional(Type.Unknown({ description: 'The same as params; counts where both are given.' })),
  depends_on: orNull(
    Type.Array(Type.String()),
    'array of strings',
    'Ids of tasks of this graph that must succeed first; see run_if.',
  ),
  run_if: orNull(
    Type.Union(RUN_IFS.map((runIf) => Type.Literal(runIf))),
    RUN_IFS.map((runIf) => `"${runIf}"`).join(', '),
    'When to run: success (default): once all dependencies have succeeded. failed: once all have ended, if one failed. always: once all have ended. Otherwise the task is skipped.',
  ),
  when: orNull(
    When,
    'object with $from, and one of equals, not, in, matches',
    'A condition on a value of a task that this one depends on, such as {"$from": "choose", "path": "/result/stdout", "equals": "yes"}. Tested once run_if lets the task run. If it is not met, the task is skipped.',
  ),
  continue_on_error: orNull(
    Type.Boolean(),
    'boolean',
    'true: if the task fails, its dependents run as after a success, and the graph does not count as failed.',
  ),
  for_each: orNull(
    Type.Union([Type.Array(Type.Unknown()), Type.Record(Type.String(), Type.Unknown())]),
    'list, or object with $from, $param or $literal',
    'A list, or {"$from": "list", "as": "lines"}: the task runs once for each element. In params, {"$item": JSON Pointer} is the element ("") or a value in it, {"$index": true} its index. The result is the list of the results.',
  ),
  max_parallel: orNull(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    'integer of at least 1',
    'With for_each: how many run at a time.',
  ),
  fail_fast: orNull(Type.Boolean(), 'boolean', 'With for_each: true cancels what has not started once one has failed.'),
  retry: orNull(Type.Number(), 'integer', 'Further attempts after the first. Default 0.'),
  retry_on: orNull(
    Type.Array(Type.Union(ERROR_CODES.map((code) => Type.Literal(code))), { maxItems: MAX_RETRY_CODES }),
    `array of error codes (${ERROR_CODES.join(', ')})`,
    'Only failures with one of these codes are followed by another attempt. Absent: all failures are.',
  ),
  backoff: orNull(
    Backoff,
    `object of initial_ms and max_ms (integers from 0 to ${MAX_BACKOFF_MS}), factor (1 to ${MAX_BACKOFF_FACTOR}) and jitter (0 to 1)`,
    'The waits between attempts.',
  ),
  cache: orNull(
    Cache,
    `object of key (string of 1 to ${MAX_CACHE_KEY_CHARACTERS} characters) and ttl_ms (integer from 0 to ${MAX_CACHE_TTL_MS})`,
    'Take over the outcome of an earlier success of the same type, tool and key instead of being executed.',
  ),
  timeout: orNull(
    Type.Integer({ minimum: -INT64_MAX, maximum: INT64_MAX }),
    'integer',
    'Milliseconds for each attempt; 0, negative or absent: no timeout.',
  ),
  secrets: orNull(
    secretMap({ maxProperties: MAX_SECRETS }),
    `object of at most ${MAX_SECRETS} secrets, each a name (a string, no placeholder) or an object with name and file`,
    'Variables of a shell, cli-skills or runtime task whose values the service has: {"TOKEN": "name of a secret"}. A runtime task may have {"name", "file"}: the value in a file, and its path in the variable.',
  ),
  annotations: orNull(stringMap(), 'object of strings', 'Kept with the task, unread.'),
})
export type TaskInput = Static<typeof TaskInput>

export const MAX_GRAPH_NAME_CHARACTERS = 200

export const MAX_LABELS = 64

/** The name of a label. */
export const LABEL_NAME = '^[A-Za-z0-9._/-]{1,63}$'

export const MAX_LABEL_VALUE_CHARACTERS = 256

/** Parameters of a graph. */
export const MAX_PARAMETERS = 256

/** The name of a parameter. */
export const PARAMETER_NAME = LABEL_NAME

/** Characters of all parameters of a graph together, as JSON. They stay in memory as long as the graph. */
export const MAX_PARAMETERS_CHARACTERS = 1024 * 1024

/** Optional fields of a graph, beside its tasks. */
export const GraphFields = Type.Object({
  name: orNull(
    Type.String({ minLength: 1, maxLength: MAX_GRAPH_NAME_CHARACTERS, pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' }),
    `string of 1 to ${MAX_GRAPH_NAME_CHARACTERS} characters, none of them a control character`,
    'What people call the graph. Need not be unique.',
  ),
  labels: orNull(
    Type.Record(Type.String({ pattern: LABEL_NAME }), Type.String({ maxLength: MAX_LABEL_VALUE_CHARACTERS }), {
      maxProperties: MAX_LABELS,
      additionalProperties: false,
    }),
    `object of at most ${MAX_LABELS} strings (names of 1 to 63 letters, digits, ".", "_", "/" or "-"; values of at most ${MAX_LABEL_VALUE_CHARACTERS} characters)`,
    'Kept with the graph, to find it by.',
  ),
  scope: orNull(
    Type.Literal('graph'),
    '"graph"',
    'With "graph" the ids of the tasks belong to this graph: other graphs may use the same ids, and a task is addressed as graph_id/task_id. Absent: ids belong to the service.',
  ),
  params: orNull(
    Type.Record(Type.String({ pattern: PARAMETER_NAME }), Type.Unknown(), {
      maxProperties: MAX_PARAMETERS,
      additionalProperties: false,
    }),
    `object of at most ${MAX_PARAMETERS} parameters (names of 1 to 63 letters, digits, ".", "_", "/" or "-")`,
    'Values that tasks use as {"$param": name}. A null has to be replaced by a value before the graph is submitted.',
  ),
  callback: orNull(
    GraphCallback,
    `object with a url, and events of ${CALLBACK_EVENTS.join(', ')}`,
    'A POST to this address when the graph has ended, or for other events.',
  ),
})

export type GraphFields = Static<typeof GraphFields>

/** The body of POST /tasks. */
export const TaskGraph = Type.Object(
  { tasks: orNull(Type.Array(TaskInput), 'array', 'At least one task.'), ...GraphFields.properties },
  { title: 'TaskGraph' },
)

/** Warnings in one answer. Further tasks fail with the same text when they run. */
export const MAX_SUBMIT_WARNINGS = 100

/** Characters of one warning. */
export const MAX_WARNING_CHARACTERS = 1_000

/** An accepted task that is certain to fail, and the error it will have. */
export const SubmitWarning = Type.Object({
  task_id: text('Id of the task.'),
  message: text('The error that the task will have.'),
})
export type SubmitWarning = Immutable<Static<typeof SubmitWarning>>

const warnings = maybe(Type.Array(SubmitWarning, { description: 'Accepted tasks that are certain to fail.' }))

const taskStatus = oneOf(TASK_STATUSES, 'A task has ended as success, failed, skipped or cancelled.')

/** The answer of POST /tasks. */
export const SubmitResponse = Type.Object(
  {
    accepted: count('Number of tasks.'),
    task_ids: texts('Ids of the tasks, in the order of the graph.'),
    graph_id: text('Id of the graph.'),
    warnings,
    tasks: maybe(
      Type.Array(Type.Object({ id: text('Id of the task.'), status: taskStatus }), {
        description: 'With wait_ms: the states of the tasks.',
      }),
    ),
    all_terminal: maybe(flag('With wait_ms: whether all tasks have ended.')),
  },
  { title: 'SubmitResponse' },
)
export type SubmitResponse = Immutable<Static<typeof SubmitResponse>>

export const RuntimeError = Type.Object({
  code: oneOf(ERROR_CODES, 'What kind of failure.'),
  message: text('What happened, in words.'),
  retryable: maybe(flag('Whether another attempt may succeed.')),
  source: maybe(text('Where the failure comes from, such as runtime.')),
  details: maybe(Type.Unknown({ description: 'More for programs.' })),
})
export type RuntimeError = Immutable<Static<typeof RuntimeError>>

export const RUN_STATUSES = ['accepted', 'running', 'success', 'failed', 'cancelled'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** The last attempt. Exists once the task has started. Times are RFC 3339 in UTC. */
export const RuntimeRecord = Type.Object({
  status: oneOf([...RUN_STATUSES, 'cancelling'], 'State of the attempt.'),
  handle_id: maybe(text('Id of the attempt where it executes.')),
  attempt: count('Number of the attempt, from 1.'),
  started_at: maybe(time('When the attempt started.')),
  finished_at: maybe(time('When the task ended.')),
  duration_ms: maybe(count('Milliseconds of the attempt.')),
  error: maybe(RuntimeError),
})
export type RuntimeRecord = Immutable<Static<typeof RuntimeRecord>>

export const ProgressEntry = Type.Object({
  timestamp: time('When it was reported.'),
  message: maybe(text('What was reported.')),
  data: maybe(Type.Unknown({ description: 'More for programs.' })),
})
export type ProgressEntry = Immutable<Static<typeof ProgressEntry>>

/** The end of an attempt. `error` and `code` are absent after success; unknown times are absent. */
export const AttemptRecord = Type.Object({
  attempt: count('Number of the attempt, from 1.'),
  started_at: maybe(time('When it started.')),
  finished_at: maybe(time('When it ended. Absent if the service was killed.')),
  error: maybe(text('The cause, as in the error of the task. Absent after success.')),
  code: maybe(oneOf(ERROR_CODES, 'What kind of failure. Absent after success.')),
  exit_code: maybe(Type.Integer({ description: 'Exit code of its program.' })),
  tail: maybe(text('The last lines of its output, at most 2 KiB.')),
})
export type AttemptRecord = Immutable<Static<typeof AttemptRecord>>

/** Where the outcome of a task comes from that was not executed, because of a rerun or its `cache`. */
export const ReusedFrom = Type.Object(
  {
    graph_id: text('Id of the graph in which the task was executed.'),
    task_id: text('Id of the task there.'),
  },
  { description: 'The task was not executed: a rerun, or its cache, took over this outcome.' },
)
export type ReusedFrom = Immutable<Static<typeof ReusedFrom>>

/** The answer of GET /tasks/{id}. Absent values are left out. */
export const TaskRecord = Type.Object(
  {
    id: text('Id of the task.'),
    type: text('The executor.'),
    tool_name: maybe(text('The tool of the executor.')),
    execution_category: text('Equal to type.'),
    params: maybe(Type.Unknown({ description: 'As submitted. Values of env are "***".' })),
    input: maybe(Type.Unknown({ description: 'As submitted. Values of env are "***".' })),
    resolved_input: maybe(
      Type.Unknown({
        description:
          'What the executor got in place of an input with placeholders ($from, $param, $literal), from the start of the first attempt on. Values of env are "***". Above 64 KiB {"$digest": "sha256:...", "length": bytes of its JSON}.',
      }),
    ),
    depends_on: maybe(texts('Ids of tasks of its graph that must succeed first; see run_if.')),
    run_if: maybe(oneOf(RUN_IFS, 'As submitted. Absent: success.')),
    when: maybe(Type.Unknown({ description: 'As submitted.' })),
    continue_on_error: maybe(flag('As submitted. true: a failure of the task counts as a success for its dependents.')),
    for_each: maybe(Type.Unknown({ description: 'As submitted. The task runs once for each element of this list.' })),
    max_parallel: maybe(count('As submitted. Children that may run at a time.')),
    fail_fast: maybe(flag('As submitted. true: the failure of a child cancels those that have not started.')),
    retry: Type.Number({ minimum: 0, description: 'Further attempts after the first.' }),
    retry_on: maybe(Type.Array(oneOf(ERROR_CODES, 'An error code.'), { description: 'As submitted. Absent: all.' })),
    backoff: maybe(Backoff),
    cache: maybe(Cache),
    timeout: maybe(Type.Integer({ description: 'Milliseconds for each attempt; 0 or less: no limit.' })),
    secrets: maybe(secretMap({ description: 'As submitted: names, never values.' })),
    annotations: maybe(textMap('As submitted.')),
    graph_id: text('Id of its graph.'),
    parent: maybe(text('Of a child: id of the task with for_each.')),
    index: maybe(count('Of a child: index of its element, from 0.')),
    child_count: maybe(count('Of a task with for_each that has started: number of its children.')),
    replaced: maybe(
      Type.Literal(true, { description: 'Another graph has taken the id. This record is read below its graph.' }),
    ),
    reused_from: maybe(ReusedFrom),
    status: taskStatus,
    run_status: maybe(oneOf(RUN_STATUSES, 'State of its run. Exists once the task has started.')),
    attempt: maybe(count('Number of the last attempt, from 1.')),
    handle_id: maybe(text('Id of the last attempt where it executes, such as in the runtime service.')),
    result: maybe(Type.Unknown({ description: 'What the tool returned.' })),
    error: maybe(text('Why the task did not succeed.')),
    runtime: maybe(RuntimeRecord),
    progress: maybe(Type.Array(ProgressEntry, { description: 'The last 100 reports, the newest last.' })),
    attempts: maybe(
      Type.Array(AttemptRecord, {
        description: 'The last ten attempts, the newest last. Exists once an attempt other than the last has ended.',
      }),
    ),
    waiting: maybe(Waiting),
    created_at: time('When the graph was accepted.'),
    updated_at: time('When the state of the task changed last.'),
    started_at: maybe(time('When the first attempt started.')),
    finished_at: maybe(time('When the task ended.')),
  },
  { title: 'TaskRecord' },
)
export type TaskRecord = Immutable<Static<typeof TaskRecord>>

/** The effect of a cancel on one task. `event` is absent if the task had ended before. */
export const CancelledTask = Type.Object({
  task_id: text('Id of the task.'),
  status: taskStatus,
  runtime: Type.Object({
    status: text('State of its run: cancelling, cancelled, or the end that it had before.'),
    error: maybe(Type.Object({ code: oneOf(ERROR_CODES, 'Why it did not succeed.') })),
  }),
  event: maybe(
    Type.Object(
      { type: Type.Literal('task_cancel_requested'), task_id: text('Id of the task.') },
      { description: 'Absent if the task had ended before.' },
    ),
  ),
})
export type CancelledTask = Immutable<Static<typeof CancelledTask>>

/** The answer of POST /tasks/{id}/cancel. */
export const CancelResponse = Type.Object({
  tasks: Type.Array(CancelledTask, { description: 'The named task, then the changed tasks downstream.' }),
})
export type CancelResponse = Immutable<Static<typeof CancelResponse>>

/** Of the interface; fixed by the specification. The version of the build is that of `--version`. */
export const HEALTH_VERSION = 'v1.0.0'

const version = Type.Literal(HEALTH_VERSION, { description: 'Version of the interface.' })

/** The answer of GET /health. */
export const HealthResponse = Type.Object({
  status: Type.Literal('ok'),
  version,
  uptime: text('Time since the start, such as 3m12s.'),
  ready: maybe(Type.Literal(false, { description: 'Present while the service accepts no graphs.' })),
  reason: maybe(text('Why the service accepts no graphs.')),
})
export type HealthResponse = Immutable<Static<typeof HealthResponse>>

/** The answer of GET /readyz if the service accepts graphs. Otherwise it is 503 with an `ErrorResponse`. */
export const ReadyResponse = Type.Object({ status: Type.Literal('ready'), version })
export type ReadyResponse = Immutable<Static<typeof ReadyResponse>>

/** The answer of GET /metrics. All numbers count from the start of the service. */
export const MetricsResponse = Type.Object({
  tasks_total: count('Tasks accepted.'),
  tasks_running: count('Tasks that have started and not ended.'),
  tasks_succeeded: count('Tasks that succeeded.'),
  tasks_failed: count('Tasks that failed.'),
  by_type: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), { description: 'Tasks accepted, by type.' }),
})
export type MetricsResponse = Immutable<Static<typeof MetricsResponse>>

/** The body of every refusal. */
export const ErrorResponse = Type.Object({ error: text('What is wrong, and the remedy.') }, { title: 'ErrorResponse' })
export type ErrorResponse = Immutable<Static<typeof ErrorResponse>>
