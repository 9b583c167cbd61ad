/** `taskmill-runtime health`: prints the answer of GET /readyz. Container health checks run it, as the images have no curl. */
import { defineCommand } from './command.ts'

export const health = defineCommand({
  summary: 'Check that the service is ready.',
  usage: '',
  settings: {},
  takesTaskId: false,
  run: async ({ client }) => ({ body: await client.call({ method: 'GET', path: '/readyz' }), exitCode: 0 }),
})
