/** Signals to a task of type `wait`, and answers with its record once that is on disk. */
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import { runSync } from '../../shared/process/steps.ts'
import { decodeJson } from '../json/body.ts'
import type { Task } from '../task/graph.ts'
import { isWait, looksOutside, takesSignal } from '../task/wait.ts'
import { conflict, endedByCaller, ensureSingle } from './asked-task.ts'
import { knownTask, type TaskAddress } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { recordJson } from './record-json.ts'

/**
 * Ends the wait: the JSON value in `body` becomes its result, null without a body. The same value again changes nothing. Throws
 * 404; 400 for what is no JSON; 409 for a task that is no wait, takes no signal, does not wait yet, or has another end; 503 when
 * the disk does not take it.
 */
export async function signalTask(parts: OperationParts, address: TaskAddress, body: Uint8Array): Promise<string> {
  const value = body.length === 0 ? null : runSync(decodeJson(body, {}))
  const task = knownTask(parts.store, address)
  ensureSignallable(task)
  await endedByCaller(
    parts,
    task,
    () => parts.scheduler.signal(task, value),
    () => ensureSame(task, value),
    'signalled',
  )
  return await recordJson(task, parts.keeper.results)
}

function ensureSignallable(task: Task): void {
  if (!isWait(task)) throw conflict(task, `is no ${WAIT_TYPE}: its type is ${task.type}`)
  ensureSingle(task, 'signal')
  // The values of its placeholders are known once it waits.
  const isChecked = task.isTerminal || task.rare.asked_at !== undefined
  if (isChecked && !takesSignal(task)) {
    const what = looksOutside(task) ? 'an answer' : 'a time'
    throw conflict(task, `waits for ${what}, not for a signal: submit it with signal true to end it earlier`)
  }
}

function ensureSame(task: Task, value: unknown): void {
  if (task.status === 'success' && Bun.deepEquals(task.result, value, true)) return
  throw conflict(task, `has ended already: ${task.rare.error ?? `${task.status} with another result`}`)
}
