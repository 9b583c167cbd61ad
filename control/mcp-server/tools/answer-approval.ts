/** `answer_approval`: passes on what the user has decided. A host that can ask the user is made to. */

import { badRequest, ServiceError } from '../../../shared/contract/errors.ts'
import { AnswerApprovalAnswer } from '../../../shared/contract/mcp-answers.ts'
import { AnswerApprovalInput } from '../../../shared/contract/mcp-inputs.ts'
import { type Answer, answerApproval, checkedAnswer, ensureOpen } from '../../operations/answer-approval.ts'
import { addressOf, knownTask } from '../../operations/named-tasks.ts'
import type { Task } from '../../task/graph.ts'
import { answerIn, approvalQuestion, replyFor } from '../approval-question.ts'
import { NeedsAnswers } from '../question.ts'
import { defineTool, type ToolContext } from '../tool.ts'

export const answerApprovalTool = defineTool({
  name: 'answer_approval',
  title: 'Approve or reject a task',
  description:
    'Approve or reject a task of type approval that waits, as the user has decided. Never decide yourself. If the host can ask the user, it does, and approved, who and why are ignored; otherwise ask the user first. Approved: dependent tasks run. Rejected: the task fails with error_code denied.',
  right: 'answer',
  input: AnswerApprovalInput,
  answer: AnswerApprovalAnswer,
  isDestructive: true,
  async run({ task_id, approved, who, why }, parts, asker): Promise<AnswerApprovalAnswer | NeedsAnswers> {
    const address = addressOf(parts.store, task_id)
    const task = knownTask(parts.store, address)
    const answer = asker.canAsk ? replyOf(task, asker) : relayed({ approved, who, why })
    if (answer instanceof NeedsAnswers) return answer
    const { status, result } = await answerApproval(parts, address, answer, asker.by)
    return { id: task.address, status, result }
  },
})

function replyOf(task: Task, { replyTo, by }: ToolContext): Answer | NeedsAnswers {
  const reply = replyFor(task, replyTo)
  if (reply === undefined) {
    ensureOpen(task, by)
    return new NeedsAnswers([approvalQuestion(task)])
  }
  if (!reply.isAccepted) throw new ServiceError(409, 'the user has not answered: the task still waits')
  return answerIn(reply)
}

interface Relayed {
  readonly approved?: boolean | undefined
  readonly who?: string | undefined
  readonly why?: string | undefined
}

function relayed({ approved, who, why }: Relayed): Answer {
  if (approved === undefined) throw badRequest('invalid input: approved is required: ask the user')
  return { approved, ...checkedAnswer({ who, why }, 'refuse') }
}
