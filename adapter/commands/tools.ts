/** `taskmill tools`: the answer of GET /adapters/tools. */
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const tools = defineCommand({
  summary: 'List the action kinds as tools for a model, each with the JSON Schema of its input.',
  usage: '',
  settings: {},
  maxArguments: 0,
  run: async ({ client }) => success(await client.call({ method: 'GET', path: '/adapters/tools' })),
})
