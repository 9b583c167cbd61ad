/** Warnings in the answer to a submission, as lines for standard error. Pure. */
import { type Answer, success } from './envelope.ts'

/** The answer, and a line for each accepted task that is certain to fail. */
export function submitted(data: object): Answer {
  const { warnings } = data as { warnings?: unknown }
  if (!Array.isArray(warnings)) return success(data)
  return { ...success(data), warnings: warnings.map(({ task_id, message }) => `task ${task_id} will fail: ${message}`) }
}
