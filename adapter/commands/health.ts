/** `taskmill health`: the answer of GET /health, or of GET /readyz with `--ready`. */
import { flag } from '../../shared/flags.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Ask the control service whether it is there.',
  usage: '[--ready]',
  settings: {
    ready: flag({ help: 'Ask whether it takes in graphs (GET /readyz); exit code 1 and the reason if not.' }),
  },
  takesArguments: false,
  run: async ({ values, client }) =>
    success(await client.call({ method: 'GET', path: values.ready ? '/readyz' : '/health' })),
})
