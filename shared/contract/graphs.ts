/**
 * Answers about graphs: GET /graphs, GET /graphs/{id}, POST /graphs/{id}/cancel.
 *
 * The schemas document (`description`) and give the types. Absent values are left out. Times are RFC 3339 in UTC, with
 * milliseconds.
 */
import type { Static } from '@sinclair/typebox'
import { count, flag, maybe, oneOf, text, textMap, texts, time } from './answer-schema.ts'
import { CancelledTask, ReusedFrom } from './control.ts'
import { GraphConcurrency } from './graph-groups.ts'
import { GRAPH_STATES, UNREADABLE } from './graph-state.ts'
import { Pause } from './pauses.ts'
import { RUN_IFS } from './run-if.ts'
import { Type } from './schema-builder.ts'
import { TASK_STATUSES } from './task-status.ts'
import { Waiting } from './waiting.ts'

/** Graphs of one page, at most and by default. */
export const MAX_PAGE_GRAPHS = 1_000
export const DEFAULT_PAGE_GRAPHS = 100

/** Tasks of one graph in an answer. More would take a browser longer to draw than a person waits. */
export const MAX_GRAPH_TASKS = 10_000

/** Dependencies between the tasks of one answer. A graph of 10,000 tasks may have 50 million. */
export const MAX_GRAPH_EDGES = 100_000

/** Characters of the error of each task in the answer about its graph. The record of the task has all of it. */
export const MAX_GRAPH_ERROR_CHARACTERS = 1_000

/** Characters of the annotations of each task in the answer about its graph, names and values together. */
export const MAX_GRAPH_ANNOTATION_CHARACTERS = 1_000

/** Entries in the answer to the cancel of a graph. */
export const MAX_CANCELLED_ENTRIES = 1_000

/** Number of tasks in each state. States without a task are left out. */
export const GraphCounts = Type.Partial(
  Type.Object({
    pending: count('Tasks that have not started.'),
    running: count('Tasks that have started, including those between two attempts.'),
    success: count('Tasks that succeeded.'),
    failed: count('Tasks without attempts left.'),
    skipped: count('Tasks that lost a dependency, or did not have to run.'),
    cancelling: count('Tasks whose attempt is being ended.'),
    cancelled: count('Tasks that were cancelled.'),
  }),
  { description: 'Tasks per state; zeros are left out.' },
)
export type GraphCounts = Static<typeof GraphCounts>

/** Tasks of a graph that wait for what takes long. */
export const WaitingCounts = Type.Partial(
  Type.Object({
    approval: count('Tasks that wait until somebody approves or rejects them.'),
    backoff: count('Tasks whose pause between two attempts is not over.'),
  }),
  {
    description:
      'How many of the tasks that have not ended wait for what; zeros are left out. Absent if none waits so.',
  },
)
export type WaitingCounts = Static<typeof WaitingCounts>

/** A graph in GET /graphs. */
export const GraphSummary = Type.Object(
  {
    graph_id: text('Id of the graph.'),
    name: maybe(text('The name that was submitted with it.')),
    labels: maybe(textMap('The labels that were submitted with it.')),
    scope: maybe(Type.Literal('graph', { description: 'The ids of its tasks belong to it. Absent: to the service.' })),
    concurrency: maybe(GraphConcurrency),
    state: oneOf(
      GRAPH_STATES,
      'running until all tasks have ended. Then failed if a task failed, else cancelled if one was cancelled or skipped, else success. Failures with continue_on_error, and tasks that did not have to run, do not count.',
    ),
    task_count: count('Tasks that were not deleted.'),
    counts: GraphCounts,
    pause: maybe(Pause),
    waiting: maybe(WaitingCounts),
    created_at: time('When it was accepted.'),
    started_at: maybe(time('When its first task started.')),
    finished_at: maybe(time('When its last task ended.')),
    duration_ms: maybe(count('Milliseconds from started_at to finished_at.')),
    trace_id: text('Trace id of its submission, which its log lines carry.'),
    submitted_by: maybe(text('Name of the token that submitted it. Absent for the token of the service.')),
    tenant: maybe(text('Tenant of that token. Absent for a token without one.')),
    revision: maybe(count('How often it was changed since (PATCH /graphs/{id}). Absent for 0.')),
    patched_by: maybe(texts('Names of the tokens that changed it; without that of the service.')),
  },
  { title: 'GraphSummary' },
)
export type GraphSummary = Static<typeof GraphSummary>

/** A graph in GET /graphs?state=unreadable. */
export const UnreadableGraph = Type.Object(
  {
    graph_id: text('Id of the graph.'),
    state: Type.Literal(UNREADABLE, {
      description:
        'Its rows in the database are damaged, or of a newer version. Nothing of it runs, and its ids stay taken.',
    }),
    error: text('What is wrong with them.'),
    task_count: count('Ids of tasks that it keeps taken. 0 with scope graph.'),
    set_aside_at: time('When it was set aside.'),
  },
  { title: 'UnreadableGraph' },
)
export type UnreadableGraph = Static<typeof UnreadableGraph>

/** A task in GET /graphs/{id}. */
export const GraphTask = Type.Object(
  {
    id: text('Id of the task.'),
    type: text('Category of the task.'),
    tool_name: maybe(text('Tool of the category.')),
    status: oneOf(TASK_STATUSES, 'State of the task.'),
    replaced: maybe(Type.Literal(true, { description: 'Another graph has taken the id.' })),
    attempt: maybe(count('Number of the last attempt.')),
    depends_on: maybe(texts('Ids of the tasks that must succeed first; see run_if.')),
    run_if: maybe(oneOf(RUN_IFS, 'When it runs. Absent: success.')),
    continue_on_error: maybe(flag('true: its failure counts as a success for its dependents and for the graph.')),
    parent: maybe(text('For a child: id of its task with for_each, or of its group, which stands before it.')),
    child_count: maybe(count('For a group or a task with for_each that has started: number of its children.')),
    children: maybe(GraphCounts),
    started_at: maybe(time('When its first attempt started.')),
    finished_at: maybe(time('When it ended.')),
    duration_ms: maybe(count('Milliseconds from its start to its end, or until now.')),
    error: maybe(text(`Why it did not succeed, at most ${MAX_GRAPH_ERROR_CHARACTERS} characters.`)),
    code: maybe(text('The kind of failure.')),
    waiting: maybe(Waiting),
    reused_from: maybe(ReusedFrom),
    annotations: maybe(
      textMap(
        `As submitted. Left out where they have more than ${MAX_GRAPH_ANNOTATION_CHARACTERS} characters; the record has them.`,
      ),
    ),
  },
  { title: 'GraphTask' },
)
export type GraphTask = Static<typeof GraphTask>

/** Why a graph failed. */
export const RootCause = Type.Object({
  task_id: text('The task that failed first.'),
  error: text('Why it failed.'),
  code: maybe(text('The kind of failure.')),
  tail: maybe(text('Last lines of its output, at most 2 KiB. They are data.')),
  remedy: maybe(text('What to do about it, where the service that ran the task knows.')),
  skipped: count('Tasks that were skipped because of it.'),
  try_next: texts('Commands that tell more.'),
})
export type RootCause = Static<typeof RootCause>

/** The answer of GET /graphs/{id}. */
export const GraphDetails = Type.Object(
  {
    ...GraphSummary.properties,
    tasks: Type.Array(GraphTask, { description: 'Each task after those that it depends on.' }),
    edges: Type.Array(Type.Tuple([Type.String(), Type.String()]), {
      description: 'Pairs of ids of shown tasks: [dependency, dependent].',
    }),
    critical_path: Type.Object(
      {
        task_ids: texts('Ids of the tasks, each a dependency of the next.'),
        duration_ms: count('Sum of their durations; of tasks that still run, until now.'),
      },
      { description: 'The chain of tasks that took the longest.' },
    ),
    root_cause: maybe(RootCause),
    truncated: maybe(
      flag(
        `true if tasks are left out: more than ${MAX_GRAPH_TASKS}, or with more than ${MAX_GRAPH_EDGES} dependencies.`,
      ),
    ),
  },
  { title: 'GraphDetails' },
)
export type GraphDetails = Static<typeof GraphDetails>

/** The answer of POST /graphs/{id}/cancel. */
export const CancelGraphResponse = Type.Object({
  graph_id: text('Id of the graph.'),
  state: oneOf(GRAPH_STATES, 'State of the graph now.'),
  tasks: Type.Array(CancelledTask, {
    description: `The tasks that changed: those that were cancelled, then those that are skipped; at most ${MAX_CANCELLED_ENTRIES}.`,
  }),
  truncated: maybe(flag('true if there are more.')),
})
export type CancelGraphResponse = Static<typeof CancelGraphResponse>
