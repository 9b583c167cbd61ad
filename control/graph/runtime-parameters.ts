/** The parameters of a runtime task. Pure. */
import { type TObject, Type } from '@sinclair/typebox'
import { Placement } from '../../shared/contract/placement.ts'
import { ExecutionSpec, SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'

const { program, args, script, interpreter, env } = ExecutionSpec.properties

/** The fields of `execution`, whatever its kind. */
export const executionFields = { program, args, script, interpreter, env }

/** The fields that control reads itself, and the runtime service does not get. */
export const placementField = { placement: Type.Optional(Placement) }

/** The parameters of a runtime task: the fields of a request, the fields of `execution` at the same level, and where it runs. */
export const runtimeParameters: TObject = Type.Object({
  ...executionFields,
  ...SubmitTaskRequest.properties,
  ...placementField,
})
