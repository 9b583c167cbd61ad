/** `taskmill cancel`: cancels tasks. With `--wait` it returns once they have ended. */
import { flag } from '../../shared/flags.ts'
import { type Answer, EXIT, PartialFailure, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { callEach } from './each-id.ts'
import { taskIdsOf } from './task-ids.ts'
import { waitForTasks, waitSettings } from './wait.ts'

export const cancel = defineCommand({
  summary: 'Cancel tasks. Tasks that depend on them are skipped.',
  usage: 'TASK_ID... [--wait]',
  settings: {
    wait: flag({ help: 'Wait until the tasks have ended, within --timeout.' }),
    ...waitSettings,
  },
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, client }): Promise<Answer> {
    const ids = taskIdsOf(positionals, values)
    const tasks: unknown[] = []
    const failure = await callEach(ids, async (id) => {
      const answer = await client.call({ method: 'POST', path: `/tasks/${encodeURIComponent(id)}/cancel` })
      tasks.push(...((answer as { tasks?: unknown[] }).tasks ?? []))
    })
    if (failure !== undefined) throw new PartialFailure(failure.message, failure, { tasks })
    if (!values.wait) return success({ tasks })
    const wait = await waitForTasks(client, ids, values)
    const exitCode = wait.all_terminal ? EXIT.success : EXIT.waitTimedOut
    return { data: { tasks, wait, all_terminal: wait.all_terminal }, exitCode }
  },
})
