/** The parameters of a runtime task. Pure. */
import type { TObject } from '@sinclair/typebox'
import { ExecutionSpec, SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { stringMap } from '../../shared/contract/string-map.ts'
import { inputMap, PlacedTaskInput } from '../../shared/contract/task-inputs.ts'

/** Control places the task. The runtime service does not get this field. */
const Placement = Type.Object(
  {
    runtime: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Name of the only runtime service that may run the task.',
        examples: ['gpu-1'],
      }),
    ),
    labels: Type.Optional(
      stringMap({
        expected: 'object of strings',
        description: 'Labels that the runtime service must have, with these values; a label without a value has "".',
        examples: [{ gpu: '', zone: 'a' }],
      }),
    ),
  },
  {
    expected: 'object with runtime or labels',
    description: 'Which runtime services may run the task: one by its name, or those with labels. Default: any.',
  },
)

const { program, args, script, interpreter, env } = ExecutionSpec.properties

/** The fields of `execution`, whatever its kind. The runtime service gets a text as `stdin`. */
export const executionFields = {
  ...{ program, args, script, interpreter, env },
  stdin: Type.Optional(
    Type.Unknown({
      description: 'Text that it reads on its standard input. Any other value is written as JSON. Default: nothing.',
    }),
  ),
}

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
