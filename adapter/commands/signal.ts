/** `taskmill signal`: ends a task of type wait, with a value as its result. */
import { UsageError } from '../../shared/contract/errors.ts'
import { text } from '../../shared/settings/flags.ts'
import { jsonOrUndefined } from '../../shared/text/json.ts'
import { atTask } from '../addresses.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'
import { shown } from './shown.ts'

export const signal = defineCommand({
  summary: 'End a task of type wait. The tasks that depend on it run.',
  usage: 'ID [--value JSON]',
  settings: {
    value: text({ value: 'JSON', help: 'The result of the task. Default: null.' }),
  },
  maxArguments: 1,
  async run({ values: { value }, positionals, client, env }) {
    const id = onlyIdOf(positionals, 'task id')
    if (value !== '' && jsonOrUndefined(value) === undefined) {
      throw new UsageError(`--value: expected JSON, such as '{"build": 42}' or '"done"' (with both kinds of quotes)`)
    }
    const body = new TextEncoder().encode(value)
    const { answer: record } = await atTask(id, client, ({ path }) =>
      client.call({ method: 'POST', path: `${path}/signal`, body }),
    )
    return shown({ kind: 'task', name: id }, record, { client, env })
  },
})
