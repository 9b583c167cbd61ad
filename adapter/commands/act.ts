/** `taskmill act`: submits an action, which the service validates. `taskmill wait` gives the results of its tasks. */
import { MAX_ACTION_ANSWER_BYTES } from '../../shared/http-client.ts'
import { fileSetting, readInput } from '../../shared/request-input.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'

export const act = defineCommand({
  summary: 'Run one action: {"action": {"kind", "input", ...}, "action_id", ...}.',
  usage: '[--file action.json]',
  settings: { file: fileSetting },
  takesArguments: false,
  async run({ values, client }) {
    const body = await readInput(values.file, 'an action')
    const path = '/adapters/actions'
    return submitted(await client.call({ method: 'POST', path, body, maxAnswerBytes: MAX_ACTION_ANSWER_BYTES }))
  },
})
