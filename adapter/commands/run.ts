/** `taskmill run`: submits a graph and follows it to its end, for people and for scripts. */

import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { refusalOfFailures, unmeantFailures } from '../../shared/http/certain-failures.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { flag } from '../../shared/settings/flags.ts'
import { PartialFailure } from '../envelope.ts'
import type { Expectation } from '../follow/expectation.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { followSettings, showSettings } from './follow-settings.ts'
import { type GivenGraph, graphOf, graphSettings, inFile } from './graph-argument.ts'

export const run = defineCommand({
  summary:
    'Submit a task graph and follow it. Exit code 0 if every task succeeded or was meant to fail. Ctrl-C leaves it running.',
  usage: '[FILE] [--set name=value] [--force] [--timeout 10m]',
  settings: {
    ...graphSettings,
    force: flag({ help: 'Submit the graph even if it is certain to fail.' }),
    ...followSettings,
  },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values, positionals, given, client, env, interruption }) {
    const graph = await graphOf(positionals, values)
    const { bytes, name } = graph
    const { expectationsIn, withScope } = await import('../follow/graph-file.ts')
    const expectations = expectationsIn(bytes)
    if (!values.force) await refuseFailures(client, graph, expectations, interruption)
    const answer = await inFile(graph, submit(client, [withScope(bytes), bytes], interruption))
    const { graph_id: graphId, accepted } = answer as SubmitResponse
    const { showGraph } = await import('../follow/show.ts')
    const tasks = accepted === 1 ? 'the task' : `the ${accepted} tasks`
    const title = ` taskmill  runs ${tasks} of ${name} on ${client.baseUrl}`
    const request = { client, graphId, title, expectations, ...showSettings(values, given) }
    return { ...submitted(answer, { client, env }), ...(await showGraph({ ...request, env, interruption })) }
  },
})

/** Throws `PartialFailure` for a graph that is certain to fail, though its file does not say that it is meant to. */
async function refuseFailures(
  client: ServiceClient,
  { bytes, said }: GivenGraph,
  expectations: ReadonlyMap<string, Expectation>,
  signal: AbortSignal,
): Promise<void> {
  const path = '/tasks?dry_run=true&brief=true'
  const found = await client.call({ method: 'POST', path, body: bytes, signal }).catch((error: unknown) => {
    signal.throwIfAborted()
    // The submission words any other refusal, and an older service has no such dry run.
    if (error instanceof CallFailed && error.statusCode !== 0) return {}
    throw error
  })
  const { errors } = found as Partial<GraphDryRun>
  const failures = unmeantFailures(errors, (id) => expectations.get(id)?.expect)
  const told = failures.map((fault) => ({ ...fault, message: said(fault.message) }))
  const refusal = refusalOfFailures(told, 'correct it, or submit it as it is with --force')
  if (refusal !== undefined) throw new PartialFailure(refusal, {}, { errors: told })
}

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
