/** `taskmill health`: the answer of GET /health, or of GET /readyz with `--ready`. */
import { flag } from '../../shared/settings/flags.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Check that the control service answers.',
  usage: '[--ready]',
  settings: {
    ready: flag({ help: 'Check that the service accepts graphs (GET /readyz). If not: exit code 1 and the reason.' }),
  },
  maxArguments: 0,
  run: async ({ values, client }) =>
    success(await client.call({ method: 'GET', path: values.ready ? '/readyz' : '/health' })),
})
