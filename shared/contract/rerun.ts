/** Request and answer of POST /graphs/{id}/rerun. */
import { type Static, Type } from '@sinclair/typebox'
import { type Immutable, texts } from './answer-schema.ts'
import { SubmitResponse } from './control.ts'

/** What runs again: what did not succeed, and the named tasks; of both everything downstream. */
const RerunFrom = Type.Union([Type.Literal('failed'), Type.Array(Type.String(), { minItems: 1 }), Type.Null()], {
  expected: '"failed" or a non-empty array of ids',
  description:
    'Ids of tasks that run again, with everything downstream. What did not succeed runs again in any case. Default "failed": nothing else.',
})

/** Replace values that the graph was submitted with. */
const RerunParams = Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
  expected: 'object of parameters',
  description: 'New values for parameters of the graph. Tasks whose outcomes are reused keep what they had.',
})

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
