/**
 * Answers of the control service: records of tasks, cancel, health and metrics.
 *
 * These schemas document the answers and give the TypeScript types.
 */
import type { Static } from '@sinclair/typebox'
import { count, flag, type Immutable, maybe, oneOf, text, textMap, texts, time } from './answer-schema.ts'
import { Cache } from './cache.ts'
import { ERROR_CODES } from './error-codes.ts'
import { fileFaults } from './file-faults.ts'
import { RUN_IFS } from './run-if.ts'
import { Type } from './schema-builder.ts'
import { secretMap } from './secrets.ts'
import { Backoff, taskStatus } from './submission.ts'
import { Waiting } from './waiting.ts'

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
  placed_on: maybe(text('Name of the runtime service that had it. Absent if none had it.')),
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

/** That a task was retried in place. */
export const Retried = Type.Object(
  {
    count: count('How often it was retried, alone or because it depends on a task that was.'),
    at: time('When it was retried last.'),
    by: maybe(texts('Names of the tokens that retried it; without that of the service.')),
  },
  { description: 'The task was retried in place after it had run. The numbers of its attempts go on.' },
)
export type Retried = Immutable<Static<typeof Retried>>

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
    max_parallel: maybe(count('As submitted. Elements that may run at a time.')),
    fail_fast: maybe(flag('As submitted. true: the failure of a child cancels those that have not started.')),
    dynamic: maybe(flag('As submitted. true: its result may add tasks to its graph.')),
    tasks: maybe(
      Type.Array(Type.Unknown(), { description: 'As submitted: the tasks of a group. Values of env are "***".' }),
    ),
    retry: Type.Number({ minimum: 0, description: 'Further attempts after the first.' }),
    retry_on: maybe(Type.Array(oneOf(ERROR_CODES, 'An error code.'), { description: 'As submitted. Absent: all.' })),
    backoff: maybe(Backoff),
    cache: maybe(Cache),
    timeout: maybe(Type.Integer({ description: 'Milliseconds for each attempt; 0 or less: no limit.' })),
    queue_timeout: maybe(
      Type.Integer({
        description: 'Milliseconds that each attempt may wait before its work starts; 0 or less: no limit.',
      }),
    ),
    priority: maybe(Type.Integer({ description: 'As submitted. Absent: that of its graph, else 0.' })),
    not_before: maybe(
      Type.Union([Type.Integer(), Type.String()], {
        description: 'As submitted: milliseconds after its dependencies are done, or a time.',
      }),
    ),
    secrets: maybe(secretMap({ description: 'As submitted: names, never values.' })),
    annotations: maybe(textMap('As submitted.')),
    graph_id: text('Id of its graph.'),
    parent: maybe(text('For a child: id of its task with for_each, or of its group.')),
    index: maybe(count('For a child: index of its element, from 0. Absent in a group without for_each.')),
    child_count: maybe(count('For a group or a task with for_each that has started: number of its children.')),
    replaced: maybe(
      Type.Literal(true, { description: 'Another graph has taken the id. This record is read below its graph.' }),
    ),
    reused_from: maybe(ReusedFrom),
    retried: maybe(Retried),
    added_by: maybe(text('Id of the dynamic task whose result added it.')),
    status: taskStatus,
    run_status: maybe(oneOf(RUN_STATUSES, 'State of its run. Exists once the task has started.')),
    attempt: maybe(count('Number of the last attempt, from 1.')),
    handle_id: maybe(text('Id of the last attempt where it executes, such as in the runtime service.')),
    placed_on: maybe(text('Name of the runtime service that has the last attempt, or had it.')),
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

/** The version of the interface, fixed by the specification. `--version` prints the version of the build. */
export const HEALTH_VERSION = 'v1.0.0'

const version = Type.Literal(HEALTH_VERSION, { description: 'Version of the interface.' })

/** The answer of GET /health. */
export const HealthResponse = Type.Object({
  status: Type.Literal('ok'),
  version,
  uptime: text('Time since the start, such as 3m12s.'),
  ready: maybe(Type.Literal(false, { description: 'Present while the service accepts no graphs.' })),
  reason: maybe(text('Why the service accepts no graphs.')),
  paused_since: maybe(time('When the service was paused: no task starts. GET /pauses says by whom and why.')),
  paused_types: maybe(texts('Types of tasks that are paused, as category or category.tool.')),
  ...fileFaults,
  replica: maybe(
    Type.Object(
      {
        id: count('Number of the replica. A later start has a higher one.'),
        epoch: count('Rises when the replica loses its lease.'),
        lease_ms_left: count('Milliseconds for which no other replica can become active.'),
        graphs: count('Graphs that it has.'),
        schedules_dir_of: maybe(
          count('Number of the replica whose --schedules-dir counts. Absent if no replica has one.'),
        ),
        address_fault: maybe(
          text('Why the other replicas cannot reach it at the address that it has registered. Absent if they can.'),
        ),
      },
      { description: 'This service among those that share a database. Absent without --database.' },
    ),
  ),
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
