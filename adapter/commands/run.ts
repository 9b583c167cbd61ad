/** `taskmill run`: submits a graph and follows it to its end, for people and for scripts. */
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { CallFailed, type ServiceClient } from '../../shared/http-client.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { followSettings } from './follow-settings.ts'
import { graphOf, graphSettings, inFile } from './graph-argument.ts'

export const run = defineCommand({
  summary:
    'Submit a task graph and follow it. Exit code 0 if every task succeeded or was meant to fail. Ctrl-C leaves it running.',
  usage: '[FILE] [--set name=value] [--timeout 10m]',
  settings: { ...graphSettings, ...followSettings },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values, positionals, client, env, interruption }) {
    const graph = await graphOf(positionals, values)
    const { bytes, name } = graph
    const { expectationsIn, withScope } = await import('../follow/graph-file.ts')
    const answer = await inFile(graph, submit(client, [withScope(bytes), bytes], interruption))
    const { graph_id: graphId, accepted } = answer as SubmitResponse
    const { showGraph } = await import('../follow/show.ts')
    const tasks = accepted === 1 ? 'the task' : `the ${accepted} tasks`
    const title = ` taskmill  runs ${tasks} of ${name} on ${client.baseUrl}`
    const request = { client, graphId, title, expectations: expectationsIn(bytes), timeoutMs: values.timeout }
    return { ...submitted(answer), ...(await showGraph({ ...request, env, interruption })) }
  },
})

/** The answer to the first form of the graph. An older service, which refuses `scope`, gets the second one. */
async function submit(
  client: ServiceClient,
  [scoped, given]: readonly [scoped: Uint8Array, given: Uint8Array],
  signal: AbortSignal,
): Promise<object> {
  try {
    return await client.call({ method: 'POST', path: '/tasks', body: scoped, signal })
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof CallFailed && error.message.includes('unknown field "scope" in graph'))) throw error
    return client.call({ method: 'POST', path: '/tasks', body: given })
  }
}
