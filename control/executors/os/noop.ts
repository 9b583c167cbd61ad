/** Does nothing: `{ok: true, message}`. */
import { Type } from '../../../shared/contract/schema-builder.ts'
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

/** Shared by all tasks without a message. */
const SILENT = Object.freeze({ ok: true, message: '' })

export const noop: OsTool = {
  name: 'noop',
  params: noopParams,
  execute: (input) => (input === undefined ? SILENT : { ok: true, message: noopParams.parse(input).message ?? '' }),
  knownResult: (input) => (input === undefined ? SILENT : undefined),
}
