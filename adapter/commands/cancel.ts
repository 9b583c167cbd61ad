/** `taskmill cancel`: cancels tasks and graphs. With `--wait` it returns once they have ended. */
import type { CancelledTask, CancelResponse } from '../../shared/contract/control.ts'
import type { CancelGraphResponse } from '../../shared/contract/graphs.ts'
import { flag } from '../../shared/settings/flags.ts'
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
    const tasks: CancelledTask[] = []
    const warnings: string[] = []
    const failure = await callEach(ids, async (id) => {
      const { answer } = await atAddress(id, ({ path }) => client.call({ method: 'POST', path: `${path}/cancel` }))
      const cancelled = answer as CancelResponse | CancelGraphResponse
      tasks.push(...(cancelled.tasks ?? []))
      warnings.push(...endedBefore(id, cancelled))
    })
    if (failure !== undefined) throw new PartialFailure(failure.message, failure, { tasks })
    if (!values.wait) return { ...success({ tasks }), warnings }
    const { data: wait } = await waitForEnd(client, ids, values)
    return { data: { tasks, wait, all_terminal: wait.all_terminal }, warnings, exitCode: exitCodeOf(wait) }
  },
})

/** A sentence if nothing was left to cancel. The service answers 202 then, too. */
function endedBefore(id: string, cancelled: CancelResponse | CancelGraphResponse): string[] {
  const [first] = cancelled.tasks ?? []
  const state =
    'state' in cancelled ? first === undefined && cancelled.state : first?.event === undefined && first?.status
  const isOver = state === 'success' || state === 'failed' || state === 'cancelled' || state === 'skipped'
  return isOver ? [`${id} had ended before (${state}): there was nothing to cancel`] : []
}
