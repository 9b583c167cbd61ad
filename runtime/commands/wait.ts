/** `taskmill-runtime wait`: returns when the task has ended. It uses long polling, so no poll interval delays the answer. */

import type { ServiceClient } from '../../shared/http/client.ts'
import { duration } from '../../shared/settings/flags.ts'
import { defineCommand, taskPath } from './command.ts'

/** Milliseconds that one request is held. Proxies between us and the service may cut longer ones. */
const MAX_HOLD_MS = 20_000

/** Milliseconds that an answer may take beyond the hold time of its request. */
const ANSWER_MS = 30_000

const DAY_MS = 86_400_000

export const waitSettings = {
  timeout: duration({
    default: '0s',
    minMs: 0,
    maxMs: 30 * DAY_MS,
    range: '0 waits without a limit',
    help: 'Maximum wait. After it, the task is printed as it is and the exit code is 1.',
  }),
}

export const wait = defineCommand({
  summary: 'Wait until a task ends and show it.',
  usage: 'TASK_ID [--timeout 2m]',
  settings: waitSettings,
  takesTaskId: true,
  async run({ values, taskId, client }) {
    const { task, hasEnded } = await waitForEnd(client, taskId, values.timeout)
    return { body: task, exitCode: hasEnded ? 0 : 1 }
  },
})

/** Returns the task once it has ended, or its current record after `timeoutMs`. 0 waits without a limit. */
export async function waitForEnd(client: ServiceClient, taskId: string, timeoutMs: number) {
  const deadline = timeoutMs === 0 ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs
  for (;;) {
    const holdMs = Math.max(0, Math.min(MAX_HOLD_MS, deadline - Date.now()))
    const path = taskPath(taskId, `?wait_ms=${Math.round(holdMs)}`)
    const task = (await client.call({ method: 'GET', path, timeoutMs: holdMs + ANSWER_MS })) as { status?: unknown }
    const hasEnded = task.status !== 'accepted' && task.status !== 'running'
    if (hasEnded || Date.now() >= deadline) return { task, hasEnded }
  }
}
