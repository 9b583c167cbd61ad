/** `taskmill logs`: the output of a task. With `--follow` it is shown on standard error while the task writes it. */
import { messageOf } from '../../shared/contract/errors.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { flag, optionalInteger } from '../../shared/settings/flags.ts'
import { atTask } from '../addresses.ts'
import { EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const logs = defineCommand({
  summary: 'Print the output of a task. With --follow show it while the task writes it, on standard error.',
  usage: 'TASK_ID|GRAPH_ID/TASK_ID [--follow] [--tail 100]',
  settings: {
    follow: flag({ letter: 'f', help: 'Continue until the task has ended, also through restarts of the service.' }),
    tail: optionalInteger({ value: 'lines', min: 0, max: 100_000, help: 'Begin with the last lines of each stream.' }),
  },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values: { follow, tail }, positionals, client, interruption }) {
    const id = onlyIdOf(positionals, 'task id')
    const { address } = await atTask(id, client, ({ path }) =>
      client.call({ method: 'GET', path, signal: interruption }),
    ).catch((error: unknown) => {
      throw interruption.aborted ? interruption.reason : error
    })
    const { path } = address
    const taskId = decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))
    const { TaskOutput } = await import('../follow/task-output.ts')
    const screen = follow ? (await import('../follow/log-screen.ts')).logScreen() : undefined
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
      const answer = thrown instanceof CallFailed ? thrown : {}
      throw new PartialFailure(messageOf(thrown), answer, { task_id: taskId, ...output.text() }, exitCode)
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
