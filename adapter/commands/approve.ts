/** `taskmill approve`: approves a task that waits for it. */
import { answerCommand } from './answer-approval.ts'

export const approve = answerCommand('approve', 'Approve a task that waits for it. The tasks that depend on it run.')
