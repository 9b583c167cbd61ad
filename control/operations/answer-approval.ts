/** Approves or rejects a task that waits for it, and answers with its record once that is on disk. */
import { APPROVAL_TYPE, ApprovalAnswer, type ApprovalResult } from '../../shared/contract/approval.ts'
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { type Caller, hasRight, lacking } from '../../shared/http/callers.ts'
import { runSync } from '../../shared/process/steps.ts'
import { FREE_FIELDS, type UnknownFields } from '../../shared/request/unknown-names.ts'
import { isObject, type JsonObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import type { Synonyms } from '../../shared/text/nearest-name.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import { type Asked, answerIn, approversOf, isApproval, isSameAnswer } from '../task/approval.ts'
import type { Task } from '../task/graph.ts'
import { hasRetried } from '../task/retry.ts'
import { conflict, endedByCaller, ensureSingle, notYet } from './asked-task.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { recordJson } from './record-json.ts'

/** An approval, asked for or not. */
export type Approval = Pick<Task, 'id' | 'graph'> & Pick<Asked, 'input' | 'rare'>

/** Whether the caller approves, and who and why. */
export type Answer = Omit<ApprovalResult, 'at' | 'token'>

/**
 * Ends the approval. The same answer again changes nothing. Throws 404; 403 for a token that may not answer it; 409 for a task
 * that is no approval, cannot be answered yet, or has another answer or end; 503 when the disk does not take it.
 */
export async function answerApproval(
  parts: OperationParts,
  address: TaskAddress,
  answer: Answer,
  by: Caller | undefined,
): Promise<Task> {
  const task = knownTask(parts.store, address)
  ensureAnswerable(task)
  ensureMayAnswer(task, by)
  const { approved, who, why } = answer
  const result = {
    ...{ approved, who, ...(why !== undefined && { why }) },
    ...(by !== undefined && { token: by.grant.name }),
    at: new Date().toISOString(),
  }
  await endedByCaller(
    parts,
    task,
    () => parts.scheduler.answer(task, result),
    () => ensureSame(task, answer),
    'answered',
  )
  return task
}

/** As `answerApproval`, with `who` and `why` from the body of a request. The record of the task, as JSON. */
export async function answerWithBody(
  parts: OperationParts,
  address: TaskAddress,
  { approved, by }: { readonly approved: boolean; readonly by: Caller | undefined },
  body: Uint8Array,
): Promise<string> {
  const given = runSync(decodeJson(body, {}))
  if (!isObject(given)) throw invalidJson(`expected object, got ${jsonTypeOf(given)}`)
  const answer = { approved, ...checkedAnswer(given, parts.unknownFields) }
  const task = await answerApproval(parts, address, answer, by)
  return await recordJson(task, parts.keeper.results)
}

/**
 * Why the caller may not answer the task: it has no such right, it submitted the graph itself, or the task names others.
 * Undefined if it may.
 */
export function whyNotAllowed(task: Approval, by: Caller | undefined): ServiceError | undefined {
  if (by === undefined) return undefined
  if (!hasRight(by, 'answer')) return lacking(by, 'answer')
  const { name, rights, approve_own } = by.grant
  if (task.graph.submittedBy === name && approve_own !== true)
    return forbidden(task, `the token ${name} submitted its graph: another one has to answer (or one with approve_own)`)
  if (approve_own !== true && hasRetried(task.graph, name))
    return forbidden(
      task,
      `the token ${name} retried tasks of its graph: another one has to answer (or one with approve_own)`,
    )
  if (approve_own !== true && task.graph.patched?.by?.includes(name))
    return forbidden(task, `the token ${name} changed its graph: another one has to answer (or one with approve_own)`)
  const named = approversOf(task)
  if (named === undefined || named.includes(name) || rights.some((right) => named.includes(right))) return undefined
  return forbidden(task, `only these answer it, and not the token ${name}: ${named.join(', ')}`)
}

const forbidden = ({ id }: Approval, text: string) => new ServiceError(403, `task ${id}: ${text}`)

function ensureMayAnswer(task: Task, by: Caller | undefined): void {
  const fault = whyNotAllowed(task, by)
  if (fault !== undefined) throw fault
}

/** Throws the 403 or 409 that any answer of the caller would get now. */
export function ensureOpen(task: Task, by: Caller | undefined): void {
  ensureAnswerable(task)
  ensureMayAnswer(task, by)
  if (task.isTerminal) throw hasEnded(task)
  if (task.rare.asked_at === undefined) throw notYet(task, 'answered')
}

function ensureAnswerable(task: Task): void {
  if (!isApproval(task)) throw conflict(task, `is no approval: its type is ${task.type}`)
  ensureSingle(task, 'answer')
}

function ensureSame(task: Task, answer: Answer): void {
  const given = answerIn(task.result)
  if (given === undefined || !isSameAnswer(given, answer)) throw hasEnded(task)
}

function hasEnded(task: Task): ServiceError {
  const given = answerIn(task.result)
  if (given === undefined) return conflict(task, `has ended without an answer: ${task.rare.error ?? task.status}`)
  return conflict(task, `was ${given.approved ? 'approved' : 'rejected'} by ${given.who} at ${given.at}`)
}

const FIELDS = Object.keys(ApprovalAnswer.properties)

/** What other systems call the fields. */
const SYNONYMS: Synonyms = {
  by: 'who',
  user: 'who',
  name: 'who',
  approver: 'who',
  reason: 'why',
  comment: 'why',
  message: 'why',
}

/** `who` and `why` of an answer. Throws 400. */
export function checkedAnswer(given: JsonObject, unknownFields: UnknownFields): Pick<Answer, 'who' | 'why'> {
  const answer = withoutNulls(given)
  refuseUnknownFields(answer, { names: FIELDS, free: FREE_FIELDS, synonyms: SYNONYMS }, unknownFields)
  if (answer.who === undefined) throw badRequest(`who is required: the name of whoever answers the ${APPROVAL_TYPE}`)
  refuseWrongForm(answer, ApprovalAnswer)
  const { who, why } = answer
  for (const [field, text] of Object.entries({ who, why })) {
    if (text != null && !text.isWellFormed()) throw badRequest(`${field} has half of a character (a lone surrogate)`)
  }
  return { who, ...(why != null && { why }) }
}
