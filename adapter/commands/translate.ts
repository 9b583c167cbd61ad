/** `taskmill translate`: shows the task graph of an action without submitting it. */
import { MAX_ACTION_ANSWER_BYTES } from '../../shared/http/client.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { fileOf, fileSetting } from './file-argument.ts'

export const translate = defineCommand({
  summary: 'Show the task graph that an action translates to. Nothing is run or stored.',
  usage: '[FILE]',
  settings: { file: fileSetting },
  maxArguments: 1,
  async run({ values, positionals, client }) {
    const body = await readInput(fileOf(positionals, values), 'an action')
    const path = '/adapters/translate'
    return success(await client.call({ method: 'POST', path, body, maxAnswerBytes: MAX_ACTION_ANSWER_BYTES }))
  },
})
