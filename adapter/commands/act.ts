/** `taskmill act`: submits an action, which the service validates. `taskmill wait` gives the results of its tasks. */
import { MAX_ACTION_ANSWER_BYTES } from '../../shared/http/client.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { fileOf, fileSetting } from './file-argument.ts'

export const act = defineCommand({
  summary: 'Run one action: {"action": {"kind", "input", ...}, "action_id", ...}.',
  usage: '[FILE]',
  settings: { file: fileSetting },
  maxArguments: 1,
  async run({ values, positionals, client, env }) {
    const body = await readInput(fileOf(positionals, values), 'an action')
    const path = '/adapters/actions'
    const answer = await client.call({ method: 'POST', path, body, maxAnswerBytes: MAX_ACTION_ANSWER_BYTES })
    return submitted(answer, { client, env })
  },
})
