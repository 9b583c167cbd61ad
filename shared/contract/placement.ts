/** Where a task asks to run (`params.placement`). */
import { type Static, Type } from '@sinclair/typebox'
import { stringMap } from './string-map.ts'

/** Control places the task. The runtime service does not get this field. */
export const Placement = Type.Object(
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
export type Placement = Static<typeof Placement>
