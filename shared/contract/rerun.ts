/** Request and answer of POST /graphs/{id}/rerun. */
import type { Static } from '@sinclair/typebox'
import { type Immutable, texts } from './answer-schema.ts'
import { Type } from './schema-builder.ts'
import { MAX_PARAMETERS, SubmitResponse } from './submission.ts'

/** Ids that `from` may have. */
export const MAX_RERUN_TASKS = 100_000

/** The request to run a graph again: tasks without success, the named tasks, and all tasks downstream of them. */
const RerunFrom = Type.Union(
  [Type.Literal('failed'), Type.Array(Type.String(), { minItems: 1, maxItems: MAX_RERUN_TASKS }), Type.Null()],
  {
    expected: `"failed" or an array of 1 to ${MAX_RERUN_TASKS} ids`,
    description:
      'Ids of tasks that run again, with everything downstream. What did not succeed runs again in any case. Default "failed": nothing else.',
  },
)

/** Replace values that the graph was submitted with. */
const RerunParams = Type.Union(
  [Type.Record(Type.String(), Type.Unknown(), { maxProperties: MAX_PARAMETERS }), Type.Null()],
  {
    expected: `object of at most ${MAX_PARAMETERS} parameters`,
    description: 'New values for parameters of the graph. Tasks whose outcomes are reused keep what they had.',
  },
)

export const RerunRequest = Type.Object(
  { from: Type.Optional(RerunFrom), params: Type.Optional(RerunParams) },
  { title: 'RerunRequest' },
)
export type RerunRequest = Immutable<Static<typeof RerunRequest>>

const { accepted, task_ids, graph_id, warnings } = SubmitResponse.properties

export const RerunResponse = Type.Object(
  {
    ...{ accepted, task_ids, graph_id },
    reused: texts('Ids of the tasks that are not executed again. They have the outcomes of the source.'),
    warnings,
  },
  { title: 'RerunResponse' },
)
export type RerunResponse = Immutable<Static<typeof RerunResponse>>
