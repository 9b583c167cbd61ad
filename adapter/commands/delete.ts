/** `taskmill delete`: removes the records of tasks, and whole graphs. It does not stop what they run. */
import { atAddress } from '../addresses.ts'
import { PartialFailure, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { callEach } from './each-id.ts'
import { idsOf, idsSetting } from './ids.ts'

export const deleteByIds = defineCommand({
  summary: 'Delete tasks, or graphs that have ended. A running attempt is not stopped: cancel it first.',
  usage: 'ID...',
  settings: { taskIds: idsSetting },
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, client }) {
    const deleted: string[] = []
    const failure = await callEach(idsOf(positionals, values), async (id) => {
      await atAddress(id, ({ path }) => client.call({ method: 'DELETE', path }))
      deleted.push(id)
    })
    if (failure !== undefined) throw new PartialFailure(failure.message, failure, { deleted })
    return success({ deleted })
  },
})
