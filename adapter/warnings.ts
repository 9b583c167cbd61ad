/** Warnings in the answer to a submission, as lines for standard error. Pure. */
import type { SubmitWarning } from '../shared/contract/submission.ts'
import { submissionInBrief } from './brief.ts'
import { type Answer, success } from './envelope.ts'
import type { Caller } from './own-command.ts'

/** The answer, and a line for each accepted task that is certain to fail. */
export function submitted(data: object, caller: Caller): Answer {
  const { warnings } = data as { warnings?: unknown }
  const answer = { ...success(data), brief: () => submissionInBrief(data, caller) }
  return Array.isArray(warnings) ? { ...answer, warnings: failureLines(warnings) } : answer
}

export const failureLines = (warnings: readonly SubmitWarning[] = []): string[] =>
  warnings.map(({ task_id, message }) => `task ${task_id} will fail: ${message}`)
