/**
 * `wait`: returns when the tasks have ended, only approvals can let them go on, or the time is up. A model calls it again until all tasks have ended.
 *
 * If one of the tasks waits for an approval and the host can ask the user, the host is made to, and calls again with the
 * answers. Such a call asks nothing more: it waits.
 */

import { ServiceError } from '../../../shared/contract/errors.ts'
import { WaitAnswer } from '../../../shared/contract/mcp-answers.ts'
import { WaitInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_APPROVAL_QUESTIONS } from '../../../shared/contract/mcp-limits.ts'
import { hasRight } from '../../../shared/http/callers.ts'
import { answerApproval, whyNotAllowed } from '../../operations/answer-approval.ts'
import { type NamedTasks, namedTasks } from '../../operations/named-tasks.ts'
import type { OperationParts } from '../../operations/parts.ts'
import { isOver, type WaitOptions, waitForTasks } from '../../operations/wait.ts'
import { isAskedApproval } from '../../task/approval.ts'
import type { Task } from '../../task/graph.ts'
import { answerIn, approvalQuestion, replyFor } from '../approval-question.ts'
import { briefWait } from '../brief.ts'
import { NeedsAnswers } from '../question.ts'
import { defineTool, type ToolContext } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const waitTool = defineTool({
  name: 'wait',
  title: 'Wait for tasks',
  description:
    'Wait until tasks, or all tasks of a graph, have ended, and get their states and results. The call returns after timeout_ms at the latest, and once only approvals of people are left; do what next says until all_terminal is true. Use it instead of polling get_task.',
  right: 'read',
  input: WaitInput,
  answer: WaitAnswer,
  brief: briefWait,
  isReadOnly: true,
  async run({ until = 'all', timeout_ms = 30_000, ...names }, parts, context): Promise<WaitAnswer | NeedsAnswers> {
    const named = await namedTasks(parts.store, names)
    const options = { until, timeoutMs: timeout_ms }
    const mayAsk = context.canAsk && hasRight(context.by, 'answer') && !context.hasReplies && timeout_ms > 0
    if (mayAsk) return waitOrAsk(parts, named, options, context)
    if (context.hasReplies) await takeAnswers(parts, named.tasks, context)
    return waitForTasks(parts, named, options, context, waitAnswer)
  },
})

/** Waits, but no longer than until a task waits for an approval. */
async function waitOrAsk(
  parts: OperationParts,
  named: NamedTasks,
  options: WaitOptions,
  context: ToolContext,
): Promise<WaitAnswer | NeedsAnswers> {
  const { tasks, graph } = named
  const asked = new AbortController()
  const done = new AbortController()
  if (tasks.some(isAsked)) asked.abort()
  void parts.store.whenAnyAsked(graph === undefined ? tasks : [graph], done.signal).then(() => asked.abort())
  const signal = AbortSignal.any([context.signal, asked.signal])
  try {
    return await waitForTasks(parts, named, options, { ...context, signal }, (all) => {
      const asking = isOver(all, options.until)
        ? []
        : all.filter((task) => isAsked(task) && whyNotAllowed(task, context.by) === undefined)
      if (asking.length === 0) return waitAnswer(all)
      return new NeedsAnswers(asking.slice(0, MAX_APPROVAL_QUESTIONS).map(approvalQuestion))
    })
  } finally {
    done.abort()
  }
}

const isAsked = (task: Task): boolean => isAskedApproval(task) && !task.isDeleted

/** A dialog that was closed decides nothing, and so does one whose task has another answer by now. */
async function takeAnswers(parts: OperationParts, tasks: readonly Task[], { replyTo, by }: ToolContext): Promise<void> {
  for (const task of tasks.filter(isAsked)) {
    const reply = replyFor(task, replyTo)
    if (!reply?.isAccepted) continue
    const address = { id: task.id, graphId: task.graph.id }
    try {
      await answerApproval(parts, address, answerIn(reply), by)
    } catch (error) {
      if (!(error instanceof ServiceError && error.status === 409)) throw error
    }
  }
}
