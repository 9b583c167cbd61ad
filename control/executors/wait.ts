/**
 * The type `wait`: a task that waits until a caller signals, or until a time.
 *
 * As for an approval, no attempt executes for it (`scheduler/asked-tasks.ts`). The executor names the type and checks the
 * parameters.
 */
import { Type } from '@sinclair/typebox'
import { MAX_WAIT_MESSAGE_CHARACTERS, WAIT_TYPE } from '../../shared/contract/signal.ts'
import { NotBefore, notBeforeExpected } from '../../shared/contract/start-order.ts'
import { isNotBefore } from '../rules/not-before.ts'
import { type ExecutableTask, ExecutionError, type Executor, invalidInput, type ToolParameters } from './executor.ts'
import { ToolParams } from './params.ts'

export const waitParams = new ToolParams(
  WAIT_TYPE,
  Type.Object({
    message: Type.Optional(
      Type.String({
        maxLength: MAX_WAIT_MESSAGE_CHARACTERS,
        expected: `string of at most ${MAX_WAIT_MESSAGE_CHARACTERS} characters`,
        description: 'What it waits for, for people.',
        examples: ['The build farm has the image.'],
      }),
    ),
    until: Type.Optional(
      Type.Unsafe<NotBefore>({
        ...NotBefore,
        expected: notBeforeExpected,
        description:
          'When it succeeds by itself, with the result null: a time, or milliseconds after it began to wait.',
        examples: [60_000, '2030-01-31T09:30:00Z'],
      }),
    ),
    signal: Type.Optional(
      Type.Boolean({
        expected: 'boolean',
        description: 'Whether a signal ends it. Default: true without until, else false.',
      }),
    ),
  }),
)

const PARAMETERS: ToolParameters = { label: WAIT_TYPE, schema: waitParams.schema }

/** Throws `invalid_input` for what no task can wait for. */
export function checkWait(toolName: string | undefined, input: unknown): void {
  if (toolName !== undefined && toolName !== '') throw invalidInput(`type ${WAIT_TYPE} has no tool "${toolName}"`)
  const { until, signal } = waitParams.parse(input)
  if (!isNotBefore(until)) throw invalidInput(`parse ${WAIT_TYPE} params: until: ${until} does not exist`)
  if (until === undefined && signal === false) {
    throw invalidInput(
      `parse ${WAIT_TYPE} params: signal: nothing else would end the task (add until, or leave signal out)`,
    )
  }
}

export const wait: Executor = {
  type: WAIT_TYPE,
  parametersOf: () => PARAMETERS,
  checkInput: checkWait,
  execute({ id }: ExecutableTask) {
    throw new ExecutionError('internal', `task ${id} waits: no attempt executes it`)
  },
}
