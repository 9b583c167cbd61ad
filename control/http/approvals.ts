/** /tasks/{id}/approve and /reject: the answer to a task that waits for it. The same below /graphs/{id}/tasks. */
import type { AnyElysia } from 'elysia'
import { ApprovalAnswer, MAX_APPROVAL_ANSWER_BYTES } from '../../shared/contract/approval.ts'
import { TaskRecord } from '../../shared/contract/control.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { answerWithBody } from '../operations/answer-approval.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { TASK_PLACES, type TaskPlace } from './task-places.ts'

/** The two answers. */
const VERBS = [
  {
    verb: 'approve',
    approved: true,
    summary: 'Approve',
    description: 'The approval succeeds with result.approved true, and the tasks that depend on it run.',
    example: { who: 'ada', why: 'The plan is sound.' },
  },
  {
    verb: 'reject',
    approved: false,
    summary: 'Reject',
    description: 'The approval fails with code denied, without further attempts.',
    example: { who: 'ada', why: 'Not on a Friday.' },
  },
] as const

export function addApprovalRoutes(app: AnyElysia, partsFor: PartsFor): void {
  for (const place of TASK_PLACES) for (const verb of VERBS) addRoute(app, partsFor, place, verb)
}

function addRoute(
  app: AnyElysia,
  partsFor: PartsFor,
  { path, noun, params, errors, addressIn }: TaskPlace,
  { verb, approved, summary, description, example }: (typeof VERBS)[number],
): void {
  app.post(
    `${path}/${verb}`,
    async ({ params, request }) => {
      const body = await readBody(app, request, MAX_APPROVAL_ANSWER_BYTES)
      return answerWithBody(partsFor(request), addressIn(params), { approved, by: callerOf(request) }, body)
    },
    described({
      section: 'Tasks',
      right: 'answer',
      summary: `${summary} ${noun}`,
      description: `${description} The same answer again gets the record again.`,
      params,
      body: ApprovalAnswer,
      example,
      answers: { 200: json(TaskRecord, 'The answer is on disk: the record of the task.') },
      errors: {
        ...errors,
        400: 'The body is invalid.',
        403: 'The token has submitted the graph itself, or is not among those that the task names.',
        409: 'The task is no approval, cannot be answered yet, or has another answer or end.',
        413: 'The body is too large.',
        503: 'The service cannot store the answer.',
      },
    }),
  )
}
