/** `taskmill get`: the record of a task. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { UsageError } from '../../shared/errors.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const get = defineCommand({
  summary: 'Show a task: its state, parameters, result, error, times.',
  usage: 'TASK_ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals: [id], client }) {
    if (id === undefined || id === '') throw new UsageError('no task id: give it as argument')
    const data = await client.call({ method: 'GET', path: `/tasks/${encodeURIComponent(id)}` })
    return {
      data,
      exitCode: EXIT.success,
      table: async (look) => (await import('../table/record.ts')).recordTable(data as TaskRecord, look),
    }
  },
})
