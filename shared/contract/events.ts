/**
 * What the event streams of control send: `GET /events`, `GET /graphs/{id}/events`, `GET /tasks/{id}/events`.
 *
 * An event is sent once its change is on disk. On the wire it is a server-sent event: `id` (opaque to clients), `event`
 * (the kind) and `data` (one JSON object: `EventHeader` with the payload of the kind). Absent values are left out.
 */
import type { Static, TObject } from '@sinclair/typebox'
import { count, maybe, oneOf, text, texts, time } from './answer-schema.ts'
import { ReusedFrom } from './control.ts'
import { GRAPH_STATES } from './graph-state.ts'
import { GraphSummary } from './graphs.ts'
import { Pause } from './pauses.ts'
import { Type } from './schema-builder.ts'
import { TASK_STATUSES } from './task-status.ts'
import { Waiting } from './waiting.ts'

/** Characters of an error in an event. The record of the task has all of it. */
export const MAX_EVENT_ERROR_CHARACTERS = 1_000

/** Ids in `tasks_retried` and in the answer to a retry. */
export const MAX_RETRIED_SHOWN = 1_000

/** Ids in each list of `graph_changed`, and of the answer to a patch. */
export const MAX_PATCHED_SHOWN = 1_000

/** Graphs in the `reset` of a stream of the service. */
export const MAX_RESET_GRAPHS = 1_000

/** Tasks in the `reset` of a stream of a graph. */
export const MAX_RESET_TASKS = 10_000

/** The header of an answer that says up to which event it is true. `?after=` its value continues without a gap. */
export const EVENT_SEQ_HEADER = 'x-event-seq'

/** The fields of every event. */
export const EventHeader = Type.Object({
  seq: count('Number of the event. Numbers rise and are never given twice, but are not consecutive.'),
  previous: maybe(
    count(
      'Number of the event before it in this stream; of the first event after a resume, the number that was resumed from. Absent in the first event of a new stream and in reset. With a database, in the stream of the service: number of the event before it of the same replica.',
    ),
  ),
  at: time('When it happened.'),
})

const graphId = text('Id of the graph.')
const graphName = maybe(text('The name that was submitted with the graph.'))
const tenant = maybe(text('Tenant of the graph. Absent for a graph without one.'))
const scope = maybe(text('graph if the ids of the tasks belong to the graph.'))

/** The newest state of a task. */
export const TaskEventState = Type.Object({
  task_id: text('Id of the task.'),
  type: text('Category of the task.'),
  tool_name: maybe(text('Tool of the category.')),
  status: oneOf(TASK_STATUSES, 'State of the task.'),
  run_status: maybe(text('As in the record of the task. Absent until it has started.')),
  attempt: maybe(count('Number of the last attempt. Absent before the first one.')),
  started_at: maybe(time('When its first attempt started.')),
  finished_at: maybe(time('When it ended.')),
  duration_ms: maybe(count('Milliseconds from started_at to finished_at.')),
  error: maybe(
    text(`Why it did not succeed, or why its last attempt failed; at most ${MAX_EVENT_ERROR_CHARACTERS} characters.`),
  ),
  code: maybe(text('The kind of failure, as runtime.error.code of the record.')),
  progress: maybe(Type.Unknown({ description: 'The newest entry of progress: {timestamp, message, data}.' })),
  waiting: maybe(Waiting),
  reused_from: maybe(ReusedFrom),
  parent: maybe(text('For a child of a group or of a task with for_each: id of that task.')),
  child_count: maybe(
    count('For a group or a task with for_each that has started: number of its children. All are pending at first.'),
  ),
  scope,
  tenant,
})
export type TaskEventState = Static<typeof TaskEventState>

const stateOfGraph = oneOf(
  GRAPH_STATES,
  'failed if a task failed, else cancelled if one was cancelled or skipped, else success; running until all tasks have ended. Failures with continue_on_error, and tasks that did not have to run, do not count.',
)
const counts = Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
  description: 'Tasks per status; zeros are left out.',
})

const shownIds = (what: string) => texts(`Ids of the tasks that ${what}; the first ${MAX_PATCHED_SHOWN}.`)

/** What a patch did. */
export const PatchedTasks = {
  revision: count('How often the graph was changed in all.'),
  added: shownIds('are new'),
  removed: shownIds('are gone'),
  replaced: shownIds('have another definition'),
  truncated: maybe(Type.Literal(true, { description: 'Ids are left out.' })),
}

interface EventKind {
  /** When it comes. */
  readonly when: string
  readonly payload: TObject
}

const kind = <const P extends TObject>(when: string, payload: P) => ({ when, payload }) satisfies EventKind

/** Each kind of event, with its payload. */
export const EVENT_KINDS = {
  graph_accepted: kind(
    'A graph was submitted.',
    Type.Object({
      graph_id: graphId,
      tenant,
      name: graphName,
      labels: maybe(Type.Record(Type.String(), Type.String(), { description: 'Labels of the graph.' })),
      scope,
      task_count: count(
        'Tasks of the graph. All are pending; task_changed follows for each task that a rerun did not execute again.',
      ),
    }),
  ),
  task_changed: kind(
    'A task changed: it started, reported progress, failed an attempt, waits for an approval from now on, is being cancelled, or ended, or its outcome was reused. Changes within a few milliseconds are one event.',
    Type.Object({ graph_id: graphId, ...TaskEventState.properties }),
  ),
  task_waiting: kind(
    'The runtime service has a running task in its queue, or is away, or (without waiting) no longer so. Only while somebody watches, at most once a second for a task, and not kept: seq and id are those of the event before it.',
    Type.Object({
      graph_id: graphId,
      tenant,
      task_id: text('Id of the task.'),
      waiting: maybe(Waiting),
      scope,
    }),
  ),
  task_deleted: kind(
    'The record of a task was deleted.',
    Type.Object({ graph_id: graphId, tenant, task_id: text('Id of the task.') }),
  ),
  graph_paused: kind(
    'A graph was paused: nothing of it starts. Its end ends the pause, too.',
    Type.Object({ graph_id: graphId, tenant, name: graphName, by: Pause.properties.by, why: Pause.properties.why }),
  ),
  graph_resumed: kind(
    'A paused graph was resumed.',
    Type.Object({
      graph_id: graphId,
      tenant,
      name: graphName,
      by: maybe(text('Name of the token that resumed it. Absent for the token of the service.')),
    }),
  ),
  graph_ended: kind(
    'The last task of a graph ended, or was deleted. Comes after the event of that task.',
    Type.Object({ graph_id: graphId, tenant, name: graphName, state: stateOfGraph, counts }),
  ),
  tasks_retried: kind(
    'Tasks of a graph were retried in place. The graph runs again if it had ended; task_changed follows for each task that is pending again.',
    Type.Object({
      graph_id: graphId,
      tenant,
      name: graphName,
      retried: texts(`Ids of the tasks that the caller named, or that had failed; the first ${MAX_RETRIED_SHOWN}.`),
      tasks: count('Tasks that are pending again: those and all that depend on them.'),
      by: maybe(text('Name of the token that retried them; absent for that of the service.')),
    }),
  ),
  graph_changed: kind(
    'A caller, or the result of a dynamic task, changed which tasks a live graph has. The new ones are pending.',
    Type.Object({
      graph_id: graphId,
      tenant,
      name: graphName,
      ...PatchedTasks,
      by: maybe(
        text('Name of the token that changed it, or submitted the dynamic task; absent for that of the service.'),
      ),
      task_id: maybe(text('Id of the dynamic task whose result added the tasks.')),
    }),
  ),
  graph_removed: kind(
    'A graph was deleted, or removed because it ended long ago. The last event of its graph.',
    Type.Object({ graph_id: graphId, tenant }),
  ),
  reset: kind(
    'First event of a stream whose past is gone: the number to resume from is older than all kept events, or unknown. Carries the present state; what follows is newer.',
    Type.Object({
      reason: text('Why the stream cannot be resumed.'),
      graph_id: maybe(graphId),
      task: maybe(
        Type.Object(TaskEventState.properties, { description: 'Stream of a task: its state, as in task_changed.' }),
      ),
      graph: maybe(
        Type.Object(GraphSummary.properties, { description: 'Stream of a graph: its summary, as in GET /graphs.' }),
      ),
      tasks: maybe(
        Type.Array(TaskEventState, {
          description: `Stream of a graph: the states of its tasks, as in task_changed; at most ${MAX_RESET_TASKS}.`,
        }),
      ),
      graphs: maybe(
        Type.Array(GraphSummary, {
          description: `Stream of the service: summaries of the newest graphs, as in GET /graphs; at most ${MAX_RESET_GRAPHS}.`,
        }),
      ),
      truncated: maybe(Type.Boolean({ description: 'true if tasks or graphs are left out.' })),
    }),
  ),
  lagging: kind(
    'The client read too slowly for its buffer. The stream ends after it; resume with the id of the last event.',
    Type.Object({}),
  ),
} as const

export type EventKindName = keyof typeof EVENT_KINDS

/** The `data` of an event of kind `K`. */
export type EventData<K extends EventKindName> = Static<typeof EventHeader> & Static<(typeof EVENT_KINDS)[K]['payload']>

/** Any event, with its kind. */
export type ServiceEvent = { [K in EventKindName]: { readonly event: K } & EventData<K> }[EventKindName]
