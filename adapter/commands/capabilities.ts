/** `taskmill capabilities`: the answer of GET /adapters/capabilities. */
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const capabilities = defineCommand({
  summary: 'Show the adapter contract: its version, the action kinds, compatibility notes.',
  usage: '',
  settings: {},
  maxArguments: 0,
  run: async ({ client }) => success(await client.call({ method: 'GET', path: '/adapters/capabilities' })),
})
