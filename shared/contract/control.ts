/**
 * Requests and answers of the control service: POST /tasks, GET /tasks, cancel, health and metrics.
 *
 * These schemas validate, document (`description`, `expected`) and give the TypeScript types. `expected` completes the
 * sentence `tasks[3].depends_on: expected array of strings`. A `null` in an optional field means absent.
 */
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { stringMap } from './string-map.ts'
import type { TaskStatus } from './task-status.ts'

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

/** A submitted task. Later checks cover empty `id` and `type`, and the rules for `retry`. */
export const TaskInput = Type.Object({
  id: orNull(Type.String(), 'string', 'Non-empty and unique within the graph.'),
  type: orNull(Type.String(), 'string', 'The executor: a category (os) or a legacy type (shell, file, http ...).'),
  tool_name: orNull(Type.String(), 'string', 'The tool of the category: shell, file, http, dns, tcp, sleep, noop.'),
  params: Type.Optional(Type.Unknown({ description: 'Parameters of the executor.' })),
  input: Type.Optional(Type.Unknown({ description: 'The same as params; counts where both are given.' })),
  depends_on: orNull(
    Type.Array(Type.String()),
    'array of strings',
    'Ids of tasks of this graph that must succeed first.',
  ),
  retry: orNull(Type.Number(), 'integer', 'Further attempts after the first. Default 0.'),
  timeout: orNull(
    Type.Integer({ minimum: -INT64_MAX, maximum: INT64_MAX }),
    'integer',
    'Milliseconds for each attempt; 0, negative or absent: no timeout.',
  ),
  annotations: orNull(stringMap(), 'object of strings', 'Kept with the task, unread.'),
})
export type TaskInput = Static<typeof TaskInput>

export const MAX_GRAPH_NAME_CHARACTERS = 200

export const MAX_LABELS = 64

/** The name of a label. */
export const LABEL_NAME = '^[A-Za-z0-9._/-]{1,63}$'

export const MAX_LABEL_VALUE_CHARACTERS = 256

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
})

export type GraphFields = Static<typeof GraphFields>

/** The body of POST /tasks. */
export const TaskGraph = Type.Object({
  tasks: orNull(Type.Array(TaskInput), 'array', 'At least one task.'),
  ...GraphFields.properties,
})

/** Warnings in one answer. Further tasks fail with the same text when they run. */
export const MAX_SUBMIT_WARNINGS = 100

/** Characters of one warning. */
export const MAX_WARNING_CHARACTERS = 1_000

/** An accepted task that is certain to fail, and the error it will have. */
export interface SubmitWarning {
  readonly task_id: string
  readonly message: string
}

export interface SubmitResponse {
  readonly accepted: number
  readonly task_ids: readonly string[]
  readonly graph_id: string
  /** Absent if there are none. */
  readonly warnings?: readonly SubmitWarning[]
}

export interface RuntimeError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable?: boolean
  readonly source?: string
  readonly details?: unknown
}

/** The last attempt. Exists once the task has started. Times are RFC 3339 in UTC. */
export interface RuntimeRecord {
  readonly status: RunStatus | 'cancelling'
  readonly handle_id?: string
  readonly attempt: number
  readonly started_at?: string
  readonly finished_at?: string
  readonly duration_ms?: number
  readonly error?: RuntimeError
}

export type RunStatus = 'accepted' | 'running' | 'success' | 'failed' | 'cancelled'

export interface ProgressEntry {
  readonly timestamp: string
  readonly message?: string
  readonly data?: unknown
}

/** The end of an attempt. `error` and `code` are absent after success; unknown times are absent. */
export interface AttemptRecord {
  readonly attempt: number
  readonly started_at?: string
  readonly finished_at?: string
  /** The cause, as in the task's `error`. */
  readonly error?: string
  readonly code?: ErrorCode
  readonly exit_code?: number
  /** The last lines of its output, at most 2 KiB. */
  readonly tail?: string
}

/** The answer of GET /tasks/{id}. Absent values are left out. */
export interface TaskRecord {
  readonly id: string
  readonly type: string
  readonly tool_name?: string
  readonly execution_category: string
  readonly params?: unknown
  readonly input?: unknown
  readonly depends_on?: readonly string[]
  readonly retry: number
  readonly timeout?: number
  readonly annotations?: Readonly<Record<string, string>>
  readonly graph_id: string
  readonly status: TaskStatus
  readonly run_status?: RunStatus
  readonly attempt?: number
  readonly handle_id?: string
  readonly result?: unknown
  readonly error?: string
  readonly runtime?: RuntimeRecord
  readonly progress?: readonly ProgressEntry[]
  /** The last ten attempts, the newest last. Absent if there was only one. */
  readonly attempts?: readonly AttemptRecord[]
  readonly created_at: string
  readonly updated_at: string
  readonly started_at?: string
  readonly finished_at?: string
}

/** The effect of a cancel on one task. `event` is absent if the task had ended before. */
export interface CancelledTask {
  readonly task_id: string
  readonly status: TaskStatus
  readonly runtime: { readonly status: string; readonly error?: { readonly code: ErrorCode } }
  readonly event?: { readonly type: 'task_cancel_requested'; readonly task_id: string }
}

/** The answer of POST /tasks/{id}/cancel: the named task, then the changed tasks downstream. */
export interface CancelResponse {
  readonly tasks: readonly CancelledTask[]
}

export interface HealthResponse {
  readonly status: 'ok'
  readonly version: 'v1.0.0'
  readonly uptime: string
  /** Absent if the service accepts graphs. */
  readonly ready?: false
  /** Why the service accepts none. */
  readonly reason?: string
}

/** The answer of GET /readyz if the service accepts graphs. Otherwise it is 503 with an `ErrorResponse`. */
export interface ReadyResponse {
  readonly status: 'ready'
  readonly version: 'v1.0.0'
}

export interface MetricsResponse {
  readonly tasks_total: number
  readonly tasks_running: number
  readonly tasks_succeeded: number
  readonly tasks_failed: number
  readonly by_type: Readonly<Record<string, number>>
}

export interface ErrorResponse {
  readonly error: string
}
