/**
 * The type `approval`: a task that waits until somebody approves or rejects it.
 *
 * No attempt executes for it. The scheduler keeps it apart from the tasks that need a slot (`scheduler/approvals.ts`). The
 * executor names the type and checks the parameters.
 */

import { APPROVAL_TYPE, MAX_APPROVAL_MESSAGE_CHARACTERS, MAX_APPROVERS } from '../../shared/contract/approval.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { MAX_TOKEN_NAME_CHARACTERS } from '../../shared/http/token-entries.ts'
import { type ExecutableTask, ExecutionError, type Executor, invalidInput, type ToolParameters } from './executor.ts'
import { ToolParams } from './params.ts'

export const approvalParams = new ToolParams(
  APPROVAL_TYPE,
  Type.Object({
    message: Type.Optional(
      Type.String({
        maxLength: MAX_APPROVAL_MESSAGE_CHARACTERS,
        expected: `string of at most ${MAX_APPROVAL_MESSAGE_CHARACTERS} characters`,
        description: 'What is to be decided, for the people who decide.',
        examples: ['Deploy build 42 to production?'],
      }),
    ),
    by: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: MAX_TOKEN_NAME_CHARACTERS }), {
        minItems: 1,
        maxItems: MAX_APPROVERS,
        expected: `list of 1 to ${MAX_APPROVERS} names of tokens or rights`,
        description:
          'Who alone may answer: names of tokens, or rights such as operate. The token of the service always may.',
      }),
    ),
  }),
)

const PARAMETERS: ToolParameters = { label: APPROVAL_TYPE, schema: approvalParams.schema }

/** Throws `invalid_input` for what no approval can ask. */
export function checkApproval(toolName: string | undefined, input: unknown): void {
  if (toolName !== undefined && toolName !== '') throw invalidInput(`type ${APPROVAL_TYPE} has no tool "${toolName}"`)
  approvalParams.parse(input)
}

export const approval: Executor = {
  type: APPROVAL_TYPE,
  parametersOf: () => PARAMETERS,
  checkInput: checkApproval,
  execute({ id }: ExecutableTask) {
    throw new ExecutionError('internal', `task ${id} waits for an answer: no attempt executes it`)
  },
}
