/** Request and answer of PATCH /graphs/{id}. */
import type { Static } from '@sinclair/typebox'
import { type Immutable, maybe, text, texts } from './answer-schema.ts'
import { PatchedTasks } from './events.ts'
import { Type } from './schema-builder.ts'
import { SubmitResponse, TaskInput } from './submission.ts'

/** Tasks in each list of a patch. */
export const MAX_PATCH_TASKS = 10_000

const { params, timeout, retry, priority } = TaskInput.properties

const tasks = (description: string) => Type.Optional(Type.Array(TaskInput, { maxItems: MAX_PATCH_TASKS, description }))

export const PatchRequest = Type.Object(
  {
    revision: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'The revision of the graph that the patch is for: 409 if it has another one. Default: any.',
      }),
    ),
    add: tasks('New tasks. They may depend on each other and on any task of the graph, ended or not.'),
    remove: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: MAX_PATCH_TASKS,
        description: 'Ids of tasks that have not started. Nothing may depend on them any more.',
      }),
    ),
    replace: tasks('Whole definitions of tasks that have not started, under their ids.'),
    change: Type.Optional(
      Type.Record(Type.String(), Type.Object({ params, timeout, retry, priority }), {
        maxProperties: MAX_PATCH_TASKS,
        description:
          'By id of a task that has not started: new values of params, timeout, retry and priority. null takes a field away.',
      }),
    ),
  },
  { title: 'PatchRequest' },
)
export type PatchRequest = Immutable<Static<typeof PatchRequest>>

export const PatchResponse = Type.Object(
  {
    graph_id: text('Id of the graph.'),
    ...PatchedTasks,
    warnings: SubmitResponse.properties.warnings,
    waves: maybe(
      Type.Array(texts('Ids of tasks.'), {
        description: 'Of a dry run: all tasks of the graph, as waves of a GraphDryRun.',
      }),
    ),
    critical_path: maybe(texts('Of a dry run: as critical_path of a GraphDryRun.')),
  },
  { title: 'PatchResponse' },
)
export type PatchResponse = Immutable<Static<typeof PatchResponse>>
