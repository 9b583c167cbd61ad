/** Does nothing and says so: `{ok: true, message}`. */
import { Type } from '@sinclair/typebox'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'

export const noopParams = new ToolParams(
  'noop',
  Type.Object({
    message: Type.Optional(
      Type.String({ expected: 'string', description: 'Comes back in the result.', examples: ['hello'] }),
    ),
  }),
)

export const noop: OsTool = {
  name: 'noop',
  execute: (input) => ({ ok: true, message: input === undefined ? '' : (noopParams.parse(input).message ?? '') }),
}
