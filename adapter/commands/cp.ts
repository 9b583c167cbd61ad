/** `taskmill cp`: saves a file or a directory of a runtime task. Goes on with what an earlier call has left. */
import { UsageError } from '../../shared/contract/errors.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { atTask } from '../addresses.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { attemptSetting } from './files.ts'

export const cp = defineCommand({
  summary: 'Save a file or a directory of a runtime task. A file that was saved in part is continued.',
  usage: 'TASK_ID:PATH DEST',
  settings: { attempt: attemptSetting },
  maxArguments: 2,
  heedsInterruption: true,
  async run({ values: { attempt }, positionals, client, interruption }) {
    const { task, names, to } = argumentsOf(positionals)
    try {
      const { address } = await atTask(task, client, ({ path }) =>
        client.call({ method: 'GET', path, signal: interruption }),
      )
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

function argumentsOf([source = '', to = '']: readonly string[]) {
  const colon = source.indexOf(':')
  const task = source.slice(0, Math.max(0, colon))
  const names = source
    .slice(colon + 1)
    .split('/')
    .filter((name) => name !== '' && name !== '.')
  if (task === '') throw new UsageError(`expected TASK_ID:PATH, got ${JSON.stringify(source)}`)
  if (to === '') throw new UsageError('no destination: give a path as second argument')
  if (to === '-') throw new UsageError('cp cannot write to standard output, which has the JSON object: give a path')
  return { task, names, to }
}
