/** `taskmill files`: what a runtime task has in its workspace. */
import { optionalInteger } from '../../shared/settings/flags.ts'
import { atTask } from '../addresses.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const attemptSetting = optionalInteger({
  ...{ value: 'number', min: 1, max: Number.MAX_SAFE_INTEGER },
  help: 'An attempt, if its files are still there. Default: the last one.',
})

export const files = defineCommand({
  summary: 'List the files of a runtime task: those in its workspace, or in a directory of it.',
  usage: 'TASK_ID|GRAPH_ID/TASK_ID [DIRECTORY]',
  settings: { attempt: attemptSetting },
  maxArguments: 2,
  async run({ values: { attempt }, positionals: [id, directory = ''], client }) {
    const query = new URLSearchParams({ path: directory, ...(attempt !== undefined && { attempt: String(attempt) }) })
    const task = onlyIdOf([id ?? ''], 'task id')
    const { answer } = await atTask(task, client, ({ path }) =>
      client.call({ method: 'GET', path: `${path}/files?${query}` }),
    )
    return success(answer)
  },
})
