/** `taskmill-runtime wait`: returns when the task has ended. The service holds the requests, so no interval adds to it. */
import { duration } from '../../shared/flags.ts'
import type { ServiceClient } from '../../shared/http-client.ts'
import { defineCommand, taskPath } from './command.ts'

/** Milliseconds of one held request; proxies between us and the service cut longer ones. */
const MAX_HOLD_MS = 20_000

/** Milliseconds that an answer may take beyond the time that its request was held. */
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

/** The task when it has ended, or as it is after `timeoutMs`; 0 waits without an end. */
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
