/** `taskmill-runtime health`: the answer of GET /readyz. What a container's health check runs: images have no curl. */
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Check that the service is ready.',
  usage: '',
  settings: {},
  takesTaskId: false,
  run: async ({ client }) => ({ body: await client.call({ method: 'GET', path: '/readyz' }), exitCode: 0 }),
})
