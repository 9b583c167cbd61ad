/**
 * `taskmill logs`: the output of a task, or of all tasks of a graph. With `--follow` it is shown on standard error while it
 * is written.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { flag, optionalInteger } from '../../shared/settings/flags.ts'
import { atAddress } from '../addresses.ts'
import { EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const logs = defineCommand({
  summary:
    'Print the output of a task, or of all tasks of a graph. With --follow show it on standard error while it is written.',
  usage: 'TASK_ID|GRAPH_ID|GRAPH_ID/TASK_ID [--follow] [--tail 100]',
  settings: {
    follow: flag({
      letter: 'f',
      help: 'Continue until the task, or the graph, has ended, also through restarts of the service.',
    }),
    tail: optionalInteger({ value: 'lines', min: 0, max: 100_000, help: 'Begin with the last lines of each stream.' }),
  },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values: { follow, tail }, positionals, client, env, interruption }) {
    const id = onlyIdOf(positionals, 'task id')
    const { address, answer } = await atAddress(id, ({ path }) =>
      client.call({ method: 'GET', path, signal: interruption }),
    ).catch((error: unknown) => {
      throw interruption.aborted ? interruption.reason : error
    })
    const { path } = address
    if (address.kind === 'graph') {
      const { graphLogs } = await import('../follow/graph-logs.ts')
      return graphLogs({ client, details: answer as GraphDetails, isFollowed: follow, tail, env, interruption })
    }
    const taskId = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
    const { TaskOutput } = await import('../follow/task-output.ts')
    const screen = follow ? (await import('../follow/log-screen.ts')).logScreen(env) : undefined
    const output = new TaskOutput(client)
    try {
      await output.read({
        ...{ path, tail, isFollowed: follow, signal: interruption },
        onChunk: (chunk) => screen?.show(chunk),
        onOutage: (notice) => screen?.note(notice),
      })
    } catch (error) {
      const thrown = interruption.aborted ? interruption.reason : error
      const exitCode = thrown instanceof Interrupted ? thrown.exitCode : EXIT.error
      const refusal = thrown instanceof CallFailed ? thrown : {}
      throw new PartialFailure(messageOf(thrown), refusal, { task_id: taskId, ...output.text() }, exitCode)
    }
    const data = { task_id: taskId, ...output.text() }
    return {
      data,
      exitCode: EXIT.success,
      // Followed output has already been shown.
      table: async (look) => (follow ? [] : (await import('../table/log.ts')).logLines(data, look)),
    }
  },
})
