/** `taskmill retry`: runs a failed task, or all failed tasks of a graph, again in place. */
import { optionalInteger, text } from '../../shared/settings/flags.ts'
import { atAddress } from '../addresses.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const retry = defineCommand({
  summary: 'Run a failed or cancelled task again in its graph, or all of a graph, with all that depends on them.',
  usage: 'TASK_OR_GRAPH [--revision 3] [--idempotency-key KEY]',
  settings: {
    revision: optionalInteger({
      value: 'n',
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      help: 'The retry is refused if the graph has another revision, because somebody changed it. Default: any.',
    }),
    idempotencyKey: text({
      value: 'key',
      help: 'The same key gets the first answer again, and retries nothing again: the call can be repeated.',
    }),
  },
  maxArguments: 1,
  async run({ values: { revision, idempotencyKey: key }, positionals, client }) {
    const id = onlyIdOf(positionals, 'task or graph id')
    const body = revision === undefined ? {} : { body: new TextEncoder().encode(JSON.stringify({ revision })) }
    const headers = key === '' ? {} : { headers: { 'idempotency-key': key } }
    const retryAt = (path: string) => client.call({ method: 'POST', path: `${path}/retry`, ...body, ...headers })
    const { answer } = await atAddress(id, ({ path }) => retryAt(path))
    return success(answer)
  },
})
