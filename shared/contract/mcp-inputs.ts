/**
 * Inputs of the tools of `POST /mcp`. These schemas validate. Models read them, so the descriptions name the purpose of
 * a field.
 */
import type { TSchema } from '@sinclair/typebox'
import { ACTION_KINDS } from './adapter-v1.ts'
import { oneOf } from './answer-schema.ts'
import { GRAPH_STATES } from './graph-state.ts'
import { MAX_LOG_CHARACTERS, MAX_NAMED_TASKS, MAX_SHOWN_TASKS, MAX_TOOL_WAIT_MS } from './mcp-limits.ts'
import { MAX_PATCH_TASKS, PatchRequest } from './patch.ts'
import { PauseRequest, ResumeRequest } from './pauses.ts'
import { MAX_RERUN_TASKS } from './rerun.ts'
import { RetryRequest } from './retry.ts'
import { ScheduleFields } from './schedules.ts'
import { Type } from './schema-builder.ts'
import { stringMap } from './string-map.ts'
import { GraphFields, MAX_PARAMETERS, TaskInput } from './submission.ts'
import { TASK_STATUSES } from './task-status.ts'

const waitMs = (defaultMs: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_TOOL_WAIT_MS,
      default: defaultMs,
      expected: `integer from 0 to ${MAX_TOOL_WAIT_MS}`,
      description: `Milliseconds to wait for the end of the tasks, at most ${MAX_TOOL_WAIT_MS}. Default ${defaultMs}.`,
    }),
  )

/** Of the tools whose answers are in brief without it. */
const detail = Type.Optional(
  Type.Boolean({ expected: 'boolean', description: 'true: the full answer. Default: in brief.' }),
)

const filledText = (description: string) =>
  Type.String({ minLength: 1, expected: 'string that is not empty', description })

/** For both tools that take one task. */
const taskId = Type.String({ expected: 'string', description: 'Id of the task, as the answers show it.' })

const taskIds = Type.Optional(
  Type.Array(Type.String({ minLength: 1 }), {
    maxItems: MAX_NAMED_TASKS,
    expected: `array of at most ${MAX_NAMED_TASKS} strings that are not empty`,
    description: 'Ids of tasks, as the answers show them.',
    examples: [['fetch', 'count']],
  }),
)

const graphId = (description: string) => Type.Optional(filledText(description))

type TaskFields = typeof TaskInput.properties

/** What the list of tools says of the fields of a task. It has no room for what is inside of them. */
const TASK_WORDS: Readonly<Partial<Record<keyof TaskFields, string>>> = {
  tool_name: 'Tool of the category.',
  params:
    'Parameters of the tool. In them {"$from": task id, "path", "default", "as"} is a value of the record of an earlier task (path: JSON Pointer, default /result, /result/*/stdout gathers an array; as: text, json, lines), {"$param": name} a parameter of the graph, {"$literal": value} the value itself.',
  input: 'The same as params.',
  depends_on: 'Ids of tasks that must succeed first; see run_if.',
  run_if:
    'success (default): all dependencies have succeeded; failed: all have ended, one failed; always: all have ended. Else the task is skipped.',
  when: 'Condition on a value: {"$from": "choose", "path": "/result/stdout", "equals": "yes"}; or not, in (a list), matches (*, ?). If not met, the task is skipped.',
  continue_on_error: 'true: a failure counts as a success for dependents and for the graph.',
  for_each:
    'A list, or {"$from": "list", "as": "lines"}: runs once for each element. In params, {"$item": JSON Pointer} is the element ("") or a value in it, {"$index": true} its index, both with "as": "text" as a text. The result is the list of the results.',
  max_parallel: 'With for_each: how many run at a time.',
  fail_fast: 'With for_each: true cancels the rest once one has failed.',
  dynamic: 'true: {"add_tasks": [...]} as its result or stdout adds tasks.',
  tasks:
    'Makes it a group, without type: runs these tasks, with for_each once for each element. Result: {id: result}, or a list of these.',
  retry: 'Further attempts. Default 0.',
  retry_on: 'Only failures with these codes are retried: ["timeout", "exit_nonzero"]. Default: all.',
  backoff: 'Waits between attempts: {"initial_ms": 100, "factor": 2, "max_ms": 10000, "jitter": 0}.',
  cache: 'Take over an earlier success of the same tool and key: {"key": digest of all inputs, "ttl_ms"}.',
  timeout: 'Milliseconds for each attempt.',
  queue_timeout: 'Milliseconds that an attempt may wait to start.',
  priority: '-100 to 100; the highest starts first. Default: that of the graph, else 0.',
  not_before: 'Earliest start: a time, or milliseconds after the dependencies.',
  secrets:
    'Variables of a shell, cli-skills or runtime task whose values the service has: {"TOKEN": "name of a secret"}, for a runtime task also {"name", "file"}.',
}

const GRAPH_WORDS: Readonly<Partial<Record<keyof typeof GraphFields.properties, string>>> = {
  name: 'What people call the graph.',
  scope:
    '"graph": ids of tasks belong to this graph, so others may use the same; answers name a task graph_id/task_id.',
  params: 'Values that tasks use as {"$param": name}.',
  priority: 'That of tasks without one. Default 0.',
  not_before: 'Earliest start: a time, or milliseconds from now.',
  concurrency: 'Graphs of a group run one by one: {"group", "limit", "on_full": wait, cancel_oldest or refuse}.',
  callback: 'POST when the graph has ended: {"url", "events"}.',
  on_end: 'At the end: [{"when": "failed", "http" or "command": params}].',
}

/** The same fields. The list of tools describes them with `words`. */
const inBrief = <F extends Readonly<Record<string, TSchema>>>(
  fields: F,
  words: { readonly [K in keyof F]?: string },
): F =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const brief = words[name]
      return [name, brief === undefined ? field : { ...field, brief }]
    }),
  ) as F

const taskFields = inBrief(TaskInput.properties, TASK_WORDS)
const { retry, timeout, queue_timeout, secrets } = taskFields

export const SubmitGraphInput = Type.Object({
  tasks: Type.Array(
    Type.Object({
      ...taskFields,
      id: Type.Optional(Type.String({ description: 'Unique within the graph. Required.', examples: ['fetch'] })),
      type: Type.Optional(
        Type.String({
          description:
            'The tool itself (shell, file, http, dns, tcp, sleep, noop), or a category with a tool_name: os, mcp, cli-skills, runtime. approval waits until the user approves (params.message says what), wait for a signal or a time (params.until). Required.',
          examples: ['shell'],
        }),
      ),
      retry: Type.Optional(Type.Integer({ minimum: 0, description: 'Further attempts. Default 0.' })),
    }),
    {
      expected: 'array of tasks',
      description: 'In any order.',
    },
  ),
  ...inBrief(GraphFields.properties, GRAPH_WORDS),
  wait_ms: waitMs(0),
  dry_run: Type.Optional(
    Type.Boolean({
      expected: 'boolean',
      description: 'Only check the graph: returns all of its errors, and what would run when.',
    }),
  ),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      expected: 'string of at most 255 characters',
      description: 'The same key and tasks return the first answer again.',
    }),
  ),
  detail,
})

export const RerunGraphInput = Type.Object({
  graph_id: Type.String({ expected: 'string', description: 'Id of a graph that has ended.' }),
  from: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: MAX_RERUN_TASKS,
      expected: `array of 1 to ${MAX_RERUN_TASKS} strings`,
      description: 'Ids of tasks that run again although they succeeded, with everything downstream. Default: none.',
    }),
  ),
  params: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      maxProperties: MAX_PARAMETERS,
      expected: `object of at most ${MAX_PARAMETERS} parameters`,
      description: 'New values for parameters of the graph.',
    }),
  ),
  wait_ms: waitMs(0),
  idempotency_key: Type.Optional(
    Type.String({
      maxLength: 255,
      expected: 'string of at most 255 characters',
      description: 'The same key returns the first answer again, so a lost call can be repeated.',
    }),
  ),
  detail,
})

export const RunActionInput = Type.Object({
  kind: Type.String({
    expected: 'string',
    description: `What to do: ${ACTION_KINDS.join(', ')}, or an alias. capabilities with this kind shows the schema of its input.`,
    examples: ['os.shell'],
  }),
  input: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        expected: 'object',
        description: 'Parameters: os.shell takes command and args, os.http takes url, os.file takes action and path.',
        examples: [{ command: 'ls', args: ['-l'] }],
      },
    ),
  ),
  tool_name: Type.Optional(
    Type.String({ expected: 'string', description: 'For mcp.call: the tool, as server/tool. For cli.run: the skill.' }),
  ),
  action_id: Type.Optional(Type.String({ expected: 'string', description: 'Id of the task. Generated if absent.' })),
  retry,
  timeout,
  queue_timeout,
  secrets,
  metadata: Type.Optional(
    stringMap({ expected: 'object of strings', description: 'Stored as annotations of the task.' }),
  ),
  wait_ms: waitMs(10_000),
  detail,
})

export const WaitInput = Type.Object({
  task_ids: taskIds,
  graph_id: graphId('Wait for all tasks of this graph. Use it instead of task_ids.'),
  until: Type.Optional(
    Type.Union([Type.Literal('all'), Type.Literal('any')], {
      expected: '"all" or "any"',
      description: 'Return when all tasks have ended (default), or as soon as any task has ended.',
    }),
  ),
  timeout_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_TOOL_WAIT_MS,
      default: 30_000,
      expected: `integer from 0 to ${MAX_TOOL_WAIT_MS}`,
      description: `Milliseconds to wait, at most ${MAX_TOOL_WAIT_MS}. Default 30000.`,
    }),
  ),
  detail,
})

export const GetTaskInput = Type.Object({
  task_id: taskId,
  detail,
})

/** The fields that choose a page of a list of `things`. */
const pageOf = (things: string) => ({
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_SHOWN_TASKS,
      default: 20,
      expected: `integer from 1 to ${MAX_SHOWN_TASKS}`,
      description: `Number of ${things} to show, at most ${MAX_SHOWN_TASKS}. Default 20.`,
    }),
  ),
  cursor: Type.Optional(Type.String({ expected: 'string', description: 'next_cursor of the previous answer.' })),
})

export const ListTasksInput = Type.Object({
  status: Type.Optional(oneOf(TASK_STATUSES, 'Only tasks in this state.')),
  graph_id: graphId('Only tasks of this graph.'),
  ...pageOf('tasks'),
  detail,
})

export const ListGraphsInput = Type.Object({
  state: Type.Optional(oneOf(GRAPH_STATES, 'Only graphs in this state.')),
  name: Type.Optional(filledText('Only graphs with this name.')),
  labels: Type.Optional(
    stringMap({ expected: 'object of strings', description: 'Only graphs that have all of these labels.' }),
  ),
  ...pageOf('graphs'),
  detail,
})

export const GetGraphInput = Type.Object({
  graph_id: Type.String({ expected: 'string', description: 'Id of the graph.' }),
  detail,
})

export const GetTaskFileInput = Type.Object({
  task_id: taskId,
  path: Type.Optional(
    Type.String({
      expected: 'string',
      description: 'Path below the workspace of the task. A directory is listed. Default: the workspace.',
    }),
  ),
  attempt: Type.Optional(
    Type.Integer({ minimum: 1, expected: 'integer from 1', description: 'An attempt. Default: the last one.' }),
  ),
})

export const GetLogsInput = Type.Object({
  task_id: taskId,
  stream: Type.Optional(
    Type.String({
      expected: 'string',
      description:
        'stdout, stderr, output, body, content or progress; result is the whole result as JSON; network lists the connections of a task whose network has rules. Default: the first that the task has.',
    }),
  ),
  offset: Type.Optional(
    Type.Integer({
      expected: 'integer',
      description: 'Index of the first character to show. Default 0. A negative offset counts from the end.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LOG_CHARACTERS,
      default: 8_000,
      expected: `integer from 1 to ${MAX_LOG_CHARACTERS}`,
      description: `Characters to show, at most ${MAX_LOG_CHARACTERS}. Default 8000.`,
    }),
  ),
})

export const AnswerApprovalInput = Type.Object({
  task_id: taskId,
  approved: Type.Optional(
    Type.Boolean({ expected: 'boolean', description: 'What the user has decided. Ignored if the host asks the user.' }),
  ),
  who: Type.Optional(filledText('Who has decided: the name of the user. Needed with approved.')),
  why: Type.Optional(Type.String({ expected: 'string', description: 'The reason that the user has given.' })),
})

export const CancelInput = Type.Object({
  task_ids: taskIds,
  graph_id: graphId('Cancel all tasks of this graph that have not ended. Use it instead of task_ids.'),
})

export const CapabilitiesInput = Type.Object({
  kind: Type.Optional(
    Type.String({ expected: 'string', description: 'Show only this action kind, with the JSON Schema of its input.' }),
  ),
})

const scheduleName = filledText('Name of the schedule.')

export const ListSchedulesInput = Type.Object({
  name: Type.Optional(filledText('Show only this schedule, in full.')),
  after: Type.Optional(filledText('next_after of the previous answer.')),
})

export const PutScheduleInput = Type.Object({
  name: scheduleName,
  graph: Type.Object(
    {},
    {
      additionalProperties: true,
      expected: 'object with a list of tasks',
      description: 'The graph, as submit_graph takes it: {"tasks": [...]}, name, params and so on.',
    },
  ),
  ...ScheduleFields.properties,
  dry_run: Type.Optional(
    Type.Boolean({ expected: 'boolean', description: 'Only check the schedule, and show when it would be due.' }),
  ),
})

export const ChangeScheduleInput = Type.Object({
  name: scheduleName,
  verb: oneOf(['pause', 'resume', 'trigger', 'delete'], 'What to do.'),
})

const namedGraph = Type.Optional(Type.String({ expected: 'string', description: 'Id of a graph.' }))

export const PauseToolInput = Type.Object({ graph_id: namedGraph, ...PauseRequest.properties })

export const ResumeToolInput = Type.Object({ graph_id: namedGraph, ...ResumeRequest.properties })

export const RetryTaskInput = Type.Object({
  task_id: Type.Optional(taskId),
  graph_id: namedGraph,
  revision: RetryRequest.properties.revision,
  idempotency_key: RerunGraphInput.properties.idempotency_key,
})

const patchedTasks = (description: string) =>
  Type.Optional(
    Type.Array(Type.Object({}, { additionalProperties: true, expected: 'object' }), {
      maxItems: MAX_PATCH_TASKS,
      expected: `array of at most ${MAX_PATCH_TASKS} tasks`,
      description: `${description} As in submit_graph; depends_on and $from name ids within the graph.`,
    }),
  )

export const PatchGraphInput = Type.Object({
  graph_id: Type.String({ expected: 'string', description: 'Id of a graph that has not ended.' }),
  revision: Type.Optional(
    Type.Integer({
      minimum: 0,
      expected: 'integer from 0',
      description: 'Refuse the patch if the graph has another revision: 0 before the first change. Default: any.',
    }),
  ),
  add: patchedTasks('New tasks, which may depend on any task of the graph, ended or not.'),
  remove: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_PATCH_TASKS,
      expected: `array of at most ${MAX_PATCH_TASKS} strings`,
      description: 'Ids of tasks that have not started. Nothing may depend on them any more.',
    }),
  ),
  replace: patchedTasks('Whole definitions of tasks that have not started, under their ids.'),
  change: Type.Optional(
    Type.Record(Type.String(), Type.Object({}, { additionalProperties: true }), {
      maxProperties: MAX_PATCH_TASKS,
      expected: `object of at most ${MAX_PATCH_TASKS} tasks`,
      description: PatchRequest.properties.change.description!,
      examples: [{ build: { timeout: 60_000 } }],
    }),
  ),
  dry_run: Type.Optional(
    Type.Boolean({ expected: 'boolean', description: 'Only check the patch: returns what would run when.' }),
  ),
  idempotency_key: RerunGraphInput.properties.idempotency_key,
})

export const SignalTaskInput = Type.Object({
  task_id: taskId,
  value: Type.Optional(Type.Unknown({ expected: 'any JSON value', description: 'Any JSON value. Default null.' })),
})
