/** The parameters of a runtime task. Pure. */
import { type TObject, Type } from '@sinclair/typebox'
import { Placement } from '../../shared/contract/placement.ts'
import { ExecutionSpec, SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { inputMap, PlacedTaskInput } from '../../shared/contract/task-inputs.ts'

const { program, args, script, interpreter, env } = ExecutionSpec.properties

/** The fields of `execution`, whatever its kind. */
export const executionFields = { program, args, script, interpreter, env }

const { inputs } = SubmitTaskRequest.properties

/** The fields that control reads itself, and the runtime service gets otherwise or not at all. */
export const placementFields = {
  inputs: Type.Optional(
    inputMap(PlacedTaskInput, { description: inputs.description as string, examples: inputs.examples }),
  ),
  placement: Type.Optional(Placement),
}

/** The parameters of a runtime task: the fields of a request, the fields of `execution` at the same level, and where it runs. */
export const runtimeParameters: TObject = Type.Object({
  ...executionFields,
  ...SubmitTaskRequest.properties,
  ...placementFields,
})
