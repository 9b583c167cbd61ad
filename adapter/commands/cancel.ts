/** `taskmill cancel`: cancels tasks and graphs. With `--wait` it returns once they have ended. */
import { flag } from '../../shared/flags.ts'
import { atAddress } from '../addresses.ts'
import { type Answer, PartialFailure, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { callEach } from './each-id.ts'
import { idsOf } from './ids.ts'
import { exitCodeOf, waitForEnd, waitSettings } from './wait.ts'

export const cancel = defineCommand({
  summary: 'Cancel tasks, and the tasks of graphs. Tasks that depend on them are skipped.',
  usage: 'ID... [--wait]',
  settings: {
    wait: flag({ help: 'Wait until the tasks have ended, within --timeout.' }),
    ...waitSettings,
  },
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, client }): Promise<Answer> {
    const ids = idsOf(positionals, values)
    const tasks: unknown[] = []
    const failure = await callEach(ids, async (id) => {
      const { answer } = await atAddress(id, ({ path }) => client.call({ method: 'POST', path: `${path}/cancel` }))
      tasks.push(...((answer as { tasks?: unknown[] }).tasks ?? []))
    })
    if (failure !== undefined) throw new PartialFailure(failure.message, failure, { tasks })
    if (!values.wait) return success({ tasks })
    const { data: wait } = await waitForEnd(client, ids, values)
    return { data: { tasks, wait, all_terminal: wait.all_terminal }, exitCode: exitCodeOf(wait) }
  },
})
