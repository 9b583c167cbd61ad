/** `taskmill logs`: the output of a task. With `--follow` it is shown on standard error while the task writes it. */
import { isTerminal } from '../../shared/contract/task-status.ts'
import { messageOf } from '../../shared/errors.ts'
import { flag, optionalInteger } from '../../shared/flags.ts'
import { CallFailed } from '../../shared/http-client.ts'
import { type Address, atTask } from '../addresses.ts'
import { EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const logs = defineCommand({
  summary: 'Print the output of a task. With --follow show it while the task writes it, on standard error.',
  usage: 'TASK_ID [--follow] [--tail 100]',
  settings: {
    follow: flag({ letter: 'f', help: 'Go on until the task has ended.' }),
    tail: optionalInteger({ value: 'lines', min: 0, max: 100_000, help: 'Begin with the last lines of each stream.' }),
  },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values: { follow, tail }, positionals, client, interruption }) {
    const id = onlyIdOf(positionals, 'task id')
    const query = new URLSearchParams({ follow: String(follow), ...(tail !== undefined && { tail: String(tail) }) })
    const { TaskOutput } = await import('../follow/task-output.ts')
    const screen = follow ? (await import('../follow/log-screen.ts')).logScreen() : undefined
    const output = new TaskOutput(client)
    const look = ({ path }: Address) => client.call({ method: 'GET', path, signal: interruption })
    const { address } = await atTask(id, look).catch((error: unknown) => {
      throw interruption.aborted ? interruption.reason : error
    })
    const taskId = decodeURIComponent(address.path.slice(address.path.lastIndexOf('/') + 1))
    try {
      await output.read(address.path, query, (chunk) => screen?.show(chunk), interruption)
      const { status } = (await look(address)) as { status?: unknown }
      // The service ends the logs that are followed when it stops.
      if (follow && !isTerminal(String(status))) throw new Error(`the log ended before task ${taskId}: follow it again`)
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
      // What was followed has been shown.
      table: async (look) => (follow ? [] : (await import('../table/log.ts')).logLines(data, look)),
    }
  },
})
