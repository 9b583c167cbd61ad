/** Waits for a given time: `{slept_ms}`. */
import { Type } from '../../../shared/contract/schema-builder.ts'
import { ExecutionError } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'

/** Maximum milliseconds of a sleep. */
export const MAX_SLEEP_MS = 600_000

const expected = `number from 0 to ${MAX_SLEEP_MS}`

export const sleepParams = new ToolParams(
  'sleep',
  Type.Object({
    duration_ms: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: MAX_SLEEP_MS,
        default: 0,
        expected,
        description: 'Milliseconds. Default 0.',
        examples: [1_500],
      }),
    ),
  }),
)

export const sleep: OsTool = {
  name: 'sleep',
  params: sleepParams,
  execute(input, { signal }) {
    const ms = sleepParams.parse(input).duration_ms ?? 0
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', wake)
        resolve({ slept_ms: ms })
      }, ms)
      const wake = () => {
        clearTimeout(timer)
        reject(new ExecutionError('cancelled', 'sleep was ended'))
      }
      signal.addEventListener('abort', wake, { once: true })
      if (signal.aborted) wake()
    })
  },
}
