/** The question that an approval asks the person who uses an MCP host, and what the answer means. */
import { APPROVAL_TYPE, MAX_WHO_CHARACTERS, MAX_WHY_CHARACTERS } from '../../shared/contract/approval.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import { type Answer, checkedAnswer } from '../operations/answer-approval.ts'
import { messageOf } from '../task/approval.ts'
import type { Task } from '../task/graph.ts'
import type { Question, Reply } from './question.ts'

/** The prefix keeps ids such as `__proto__` from being names of members. */
const keyOf = (task: Task): string => `${APPROVAL_TYPE} ${task.address}`

const DECISIONS = ['approve', 'reject']

export function approvalQuestion(task: Task): Question {
  const message = messageOf(task)
  return {
    key: keyOf(task),
    message: `Task ${task.address} waits for an approval${message === undefined ? '.' : `:\n${message}`}`,
    fields: {
      decision: { type: 'string', title: 'Decision', enum: DECISIONS },
      who: { type: 'string', title: 'Your name', maxLength: MAX_WHO_CHARACTERS },
      why: { type: 'string', title: 'Reason', maxLength: MAX_WHY_CHARACTERS },
    },
    required: ['decision', 'who'],
  }
}

/** What the call says of the approval; undefined if it says nothing. */
export const replyFor = (task: Task, replyTo: (key: string) => Reply | undefined): Reply | undefined =>
  replyTo(keyOf(task))

/** Throws 400 for a form that is not filled in as asked. */
export function answerIn({ content: { decision, ...given } }: Reply): Answer {
  if (typeof decision !== 'string' || !DECISIONS.includes(decision)) {
    throw badRequest(`the answer to the approval has no decision: expected ${DECISIONS.join(' or ')}`)
  }
  return { approved: decision === 'approve', ...checkedAnswer(given, 'ignore') }
}
