/** `taskmill-runtime health`: the answer of GET /readyz. What a container's health check runs: images have no curl. */
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Ask the service whether it is ready.',
  usage: '',
  settings: {},
  takesTaskId: false,
  run: async ({ client }) => ({ body: await client.call({ method: 'GET', path: '/readyz' }), exitCode: 0 }),
})
