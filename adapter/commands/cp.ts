/** `taskmill cp`: saves a file or a directory of a runtime task. Goes on with what an earlier call has left. */
import { UsageError } from '../../shared/contract/errors.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { type Address, atTask } from '../addresses.ts'
import { PartialFailure, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { attemptSetting } from './files.ts'

export const cp = defineCommand({
  summary: 'Save a file or a directory of a runtime task. What was saved in part is continued.',
  usage: 'TASK_ID:PATH DEST',
  settings: { attempt: attemptSetting },
  maxArguments: 2,
  heedsInterruption: true,
  async run({ values: { attempt }, positionals, client, interruption }) {
    const { sources, to } = argumentsOf(positionals)
    try {
      const { address, names } = await sourceIn(sources, client, interruption)
      const [{ saveFile }, { Outage }, { progressLine }] = await Promise.all([
        import('../../shared/streams/saved-file.ts'),
        import('../follow/outage.ts'),
        import('../follow/progress-line.ts'),
      ])
      const line = progressLine(process.stderr, names.join('/'))
      const query = attempt === undefined ? '' : `?attempt=${attempt}`
      try {
        const saved = await saveFile(client, {
          path: `${address.path}/files/${names.map(encodeURIComponent).join('/')}${query}`,
          ...{ to, name: names.at(-1) ?? 'workspace', signal: interruption },
          patience: new Outage(interruption, (notice) => line.note(notice)),
          statusOf: (error) => (error instanceof CallFailed ? error.statusCode : undefined),
          onProgress: (bytes, total) => line.show(bytes, total),
        })
        return success(saved)
      } finally {
        line.end()
      }
    } catch (error) {
      throw interruption.aborted ? interruption.reason : error
    }
  },
})

/** A task and the names of a path in it, of which the first argument may be made. */
interface Source {
  readonly task: string
  readonly names: readonly string[]
}

/** Each colon may be the one that ends the id. The longest id is the first. */
function argumentsOf([source = '', to = '']: readonly string[]) {
  const sources: Source[] = []
  for (let at = source.lastIndexOf(':'); at > 0; at = source.lastIndexOf(':', at - 1)) {
    const names = source
      .slice(at + 1)
      .split('/')
      .filter((name) => name !== '' && name !== '.')
    sources.push({ task: source.slice(0, at), names })
  }
  if (sources.length === 0) throw new UsageError(`expected TASK_ID:PATH, got ${JSON.stringify(source)}`)
  if (to === '') throw new UsageError('no destination: give a path as second argument')
  if (to === '-') throw new UsageError('cp cannot write to standard output, which has the JSON object: give a path')
  return { sources, to }
}

const NOT_FOUND = 404

/** The first of `sources` whose task the service knows. */
async function sourceIn(sources: readonly Source[], client: ServiceClient, signal: AbortSignal) {
  let unknown: CallFailed | undefined
  for (const { task, names } of sources) {
    try {
      const found: { address: Address } = await atTask(task, client, ({ path }) =>
        client.call({ method: 'GET', path, signal }),
      )
      return { address: found.address, names }
    } catch (error) {
      if (!(error instanceof CallFailed && error.statusCode === NOT_FOUND)) throw error
      if (!(unknown instanceof PartialFailure)) unknown = error // the one that names the tasks of a graph helps most
    }
  }
  if (sources.length === 1 || unknown instanceof PartialFailure) throw unknown
  const tasks = sources.map(({ task }) => JSON.stringify(task)).join(', ')
  throw new CallFailed(`no task has one of the ids ${tasks}: expected TASK_ID:PATH`, unknown)
}
