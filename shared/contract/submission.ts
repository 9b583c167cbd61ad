/**
 * The submission of a graph, POST /tasks, and its answer.
 *
 * These schemas validate, document (`description`, `expected`) and give the TypeScript types. `expected` completes the
 * sentence `tasks[3].depends_on: expected array of strings`. A `null` in an optional field means absent.
 */
import type { Static, TSchema } from '@sinclair/typebox'
import { count, flag, type Immutable, maybe, oneOf, text, texts } from './answer-schema.ts'
import { Cache, MAX_CACHE_KEY_CHARACTERS, MAX_CACHE_TTL_MS } from './cache.ts'
import { CALLBACK_EVENTS, GraphCallback } from './callbacks.ts'
import { ERROR_CODES } from './error-codes.ts'
import { GraphConcurrency, MAX_GROUP_CHARACTERS, ON_FULL } from './graph-groups.ts'
import { MAX_ON_END, ON_END_IDS, ON_END_STATES } from './on-end.ts'
import { RUN_IFS } from './run-if.ts'
import { Type } from './schema-builder.ts'
import { MAX_SECRETS, secretMap } from './secrets.ts'
import { NotBefore, notBeforeExpected, Priority, priorityExpected } from './start-order.ts'
import { stringMap } from './string-map.ts'
import { TASK_STATUSES } from './task-status.ts'

const orNull = <T extends TSchema>(schema: T, expected: string, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { expected, description }))

/** The limit of the specification's `int64`, as exact as JavaScript can compare. */
const INT64_MAX = 2 ** 63

/** Bytes of the id of a task in UTF-8. A key of an index in PostgreSQL has at most 2,704. */
export const MAX_TASK_ID_BYTES = 2_048

/** The condition of a task. `control/rules/when.ts` checks the rest. */
export const When = Type.Object({
  $from: Type.String({ expected: 'string', description: 'Id of a task that this one depends on.' }),
  path: Type.Optional(
    Type.Unknown({
      description:
        'JSON Pointer into its record. Default /result. A name "*" stands for all elements of an array: /result/*/stdout.',
    }),
  ),
  default: Type.Optional(Type.Unknown({ description: 'The value if the record has none.' })),
  as: Type.Optional(Type.Unknown({ description: 'Form of the value: text, json or lines.' })),
  equals: Type.Optional(Type.Unknown({ description: 'Met if the value is equal to this one.' })),
  not: Type.Optional(Type.Unknown({ description: 'Met if the value is not equal to this one.' })),
  in: Type.Optional(Type.Unknown({ description: 'Met if the value is equal to one of this list.' })),
  matches: Type.Optional(
    Type.Unknown({ description: 'Met if the text matches: * stands for any characters, ? for one.' }),
  ),
})

/** Attempts after the first. */
export const MAX_RETRY = 10_000

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
      'Milliseconds before the second attempt. Default 100. After the tenth attempt each wait is 10 at least.',
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

const TASK_FIELDS = {
  id: orNull(
    Type.String({ notEmpty: true }),
    'string',
    `Non-empty, unique within the graph, and of at most ${MAX_TASK_ID_BYTES} bytes.`,
  ),
  type: orNull(
    Type.String({ notEmpty: true }),
    'string',
    'The executor: a category (os), a legacy type (shell, file, http ...), approval: a task that waits until somebody approves or rejects it, or wait: one that waits for a signal, a time or an HTTP answer.',
  ),
  tool_name: orNull(Type.String(), 'string', 'The tool of the category: shell, file, http, dns, tcp, sleep, noop.'),
  params: Type.Optional(
    Type.Unknown({
      description:
        'Parameters of the executor. In them {"$from": task id, "path", "default", "as"} is a value of the record of a task before this one (path: JSON Pointer, default /result, /result/*/stdout gathers an array; as: text, json, lines), {"$param": name} a parameter of the graph, {"$literal": value} the value itself.',
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
    'A list, or {"$from": "list", "as": "lines"}: the task runs once for each element. In params, {"$item": JSON Pointer} is the element ("") or a value in it, {"$index": true} its index, both with "as": "text" as a text. The result is the list of the results.',
  ),
  max_parallel: orNull(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
    'integer of at least 1',
    'With for_each: how many elements run at a time.',
  ),
  fail_fast: orNull(Type.Boolean(), 'boolean', 'With for_each: true cancels what has not started once one has failed.'),
  dynamic: orNull(
    Type.Boolean(),
    'boolean',
    'true: once the task succeeds, the tasks that its result (or the JSON in its stdout) lists as "add_tasks" are added to the graph. They may depend on any task of it.',
  ),
  retry: orNull(Type.Number(), 'integer', `Further attempts after the first, at most ${MAX_RETRY}. Default 0.`),
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
    'integer of milliseconds (30000)',
    'Milliseconds that each attempt may run, without its wait (queue_timeout); 0, negative or absent: any time.',
  ),
  queue_timeout: orNull(
    Type.Integer({ minimum: -INT64_MAX, maximum: INT64_MAX }),
    'integer of milliseconds (30000)',
    'Milliseconds that each attempt may wait before it runs: for a slot, and for or in a runtime service; 0, negative or absent: any time.',
  ),
  priority: orNull(
    Priority,
    priorityExpected,
    'Of the tasks that wait for a slot, or in the queue of a runtime service, those with the highest start first. Default: that of the graph, else 0.',
  ),
  not_before: orNull(
    NotBefore,
    notBeforeExpected,
    'The task does not start before this time; a number is a delay in milliseconds after its dependencies are done.',
  ),
  secrets: orNull(
    secretMap({ maxProperties: MAX_SECRETS }),
    `object of at most ${MAX_SECRETS} secrets, each a name (a string, no placeholder) or an object with name, and file or mask`,
    'Variables of a shell, cli-skills or runtime task whose values the service has: {"TOKEN": "name of a secret"}. A runtime task may have {"name", "file"}: the value in a file, and its path in the variable. Values are *** in what the task prints, unless {"name", "mask": false} says otherwise.',
  ),
  annotations: orNull(stringMap(), 'object of strings', 'Kept with the task, unread.'),
}

const { for_each: _, max_parallel: __, fail_fast: ___, dynamic: ____, ...MEMBER_FIELDS } = TASK_FIELDS

/** A task of a group. */
export const MemberInput = Type.Object(MEMBER_FIELDS, { needs: ['id', 'type'] })
export type MemberInput = Static<typeof MemberInput>

/** A submitted task. Later checks cover empty `id` and `type`, and the rules for `retry`. */
export const TaskInput = Type.Object(
  {
    ...TASK_FIELDS,
    tasks: orNull(
      Type.Array(MemberInput),
      'array of tasks',
      'Makes the task a group, which has no type or params: these tasks run in its place, with for_each once for each element. They depend on each other by their ids, and are found as group/id, or group[0]/id. The result is an object of their results, with for_each a list of these.',
    ),
  },
  { needs: ['id'] },
)
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

const openObject = Type.Record(Type.String(), Type.Unknown())

/** What a graph does at its end, as submitted. `control/rules/on-end.ts` checks the rest. */
export const OnEndEntry = Type.Object(
  {
    when: orNull(
      Type.Union(ON_END_STATES.map((state) => Type.Literal(state))),
      ON_END_STATES.map((state) => `"${state}"`).join(', '),
      'The state of the graph in which it runs. Default always.',
    ),
    http: orNull(openObject, 'object', 'An HTTP request: the params of a task of type http.'),
    command: orNull(openObject, 'object', 'A command: the params of a task of type shell.'),
    type: orNull(Type.String({ minLength: 1 }), 'string', 'Any other type, with its params.'),
    tool_name: TASK_FIELDS.tool_name,
    params: TASK_FIELDS.params,
    retry: TASK_FIELDS.retry,
    retry_on: TASK_FIELDS.retry_on,
    backoff: TASK_FIELDS.backoff,
    timeout: TASK_FIELDS.timeout,
    queue_timeout: TASK_FIELDS.queue_timeout,
    secrets: TASK_FIELDS.secrets,
    annotations: TASK_FIELDS.annotations,
  },
  { additionalProperties: false },
)
export type OnEndEntry = Static<typeof OnEndEntry>

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
  priority: orNull(Priority, priorityExpected, 'That of its tasks without one of their own. Default 0.'),
  not_before: orNull(
    NotBefore,
    notBeforeExpected,
    'No task starts before this time; a number is a delay in milliseconds after the submission.',
  ),
  concurrency: orNull(
    GraphConcurrency,
    `object with a group (1 to ${MAX_GROUP_CHARACTERS} characters), and optionally limit and on_full (${ON_FULL.join(', ')})`,
    'At most limit graphs of a group run at a time, in the order of their submission.',
  ),
  callback: orNull(
    GraphCallback,
    `object with a url, and events of ${CALLBACK_EVENTS.join(', ')}`,
    'A POST to this address when the graph has ended, or for other events.',
  ),
  on_end: orNull(
    Type.Array(OnEndEntry, { maxItems: MAX_ON_END }),
    `array of at most ${MAX_ON_END} objects, each with one of http, command and type`,
    `What runs once all tasks have ended, such as {"when": "failed", "http": {"url": ...}}: a task ${ON_END_IDS}0 and so on, which is told of the graph by {"$graph": "/state"}. Needs "scope": "graph".`,
  ),
})

export type GraphFields = Static<typeof GraphFields>

/** The body of POST /tasks. */
export const TaskGraph = Type.Object(
  { tasks: orNull(Type.Array(TaskInput), 'array', 'At least one task.'), ...GraphFields.properties },
  { title: 'TaskGraph', needs: ['tasks'] },
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

/** The field `status` of a task in an answer. */
export const taskStatus = oneOf(TASK_STATUSES, 'A task has ended as success, failed, skipped or cancelled.')

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
