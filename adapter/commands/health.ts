/** `taskmill health`: the answer of GET /health. */
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Ask the control service whether it is there.',
  usage: '',
  settings: {},
  takesArguments: false,
  run: async ({ client }) => success(await client.call({ method: 'GET', path: '/health' })),
})
