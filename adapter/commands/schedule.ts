/** `taskmill schedule`: graphs that the service submits at certain times. */
import { UsageError } from '../../shared/contract/errors.ts'
import {
  CATCH_UPS,
  MAX_EVERY_MS,
  MAX_JITTER_MS,
  MAX_KEPT_RUNS,
  MIN_EVERY_MS,
  OVERLAPS,
} from '../../shared/contract/schedule-words.ts'
import type { Schedule, ScheduleFile, ScheduleSummary } from '../../shared/contract/schedules.ts'
import { nameOfFile } from '../../shared/graph-file/schedule-block.ts'
import {
  choice,
  duration,
  flag,
  flagName,
  optionalInteger,
  type SettingValues,
  text,
} from '../../shared/settings/flags.ts'
import { withoutByteOrderMark } from '../../shared/text/json-bytes.ts'
import { EXIT, success } from '../envelope.ts'
import { failureLines } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { type GivenGraph, graphOf, graphSettings, inFile } from './graph-argument.ts'
import { verbOf } from './verb.ts'

const VERBS = ['add', 'list', 'files', 'get', 'next', 'trigger', 'pause', 'resume', 'delete'] as const

const SYNONYMS = { put: 'add', create: 'add', ls: 'list', show: 'get', run: 'trigger', rm: 'delete', remove: 'delete' }

/** Flags of `add` alone, beside those of a graph. */
const addSettings = {
  name: text({ value: 'name', help: 'Name of the schedule. Default: that of the file, without its ending.' }),
  cron: text({
    value: 'expression',
    help: 'When: "0 3 * * *", "0 9 * * MON-FRI", @daily. Six fields begin with seconds.',
  }),
  every: duration({
    default: '0s',
    minMs: 0,
    maxMs: MAX_EVERY_MS,
    help: `Instead of --cron: time between two due times, at least ${MIN_EVERY_MS / 1_000}s.`,
  }),
  at: text({ value: 'time', help: 'Instead of --cron: the only due time, such as 2030-01-31T09:30:00Z.' }),
  timezone: text({ value: 'zone', help: 'With --cron: its time zone, such as Europe/Berlin. Default UTC.' }),
  overlap: choice({ default: OVERLAPS[0], choices: OVERLAPS, help: 'When a graph of the schedule still runs.' }),
  catchUp: choice({
    default: CATCH_UPS[0],
    choices: CATCH_UPS,
    help: 'What is made up for of the due times that passed while the service was down. all requires --overlap queue or allow.',
  }),
  jitter: duration({
    default: '0s',
    minMs: 0,
    maxMs: MAX_JITTER_MS,
    help: 'Each graph is submitted up to this much later.',
  }),
  start: text({ value: 'time', help: 'Nothing is due before.' }),
  end: text({ value: 'time', help: 'Nothing is due after.' }),
  keep: optionalInteger({
    value: 'n',
    min: 1,
    max: MAX_KEPT_RUNS,
    help: 'Ended graphs of the schedule that stay. Default: as long as other graphs.',
  }),
  onFailure: text({
    value: 'url',
    help: 'Where to POST when due times were missed, a graph was refused, or one has failed.',
  }),
  paused: flag({ help: 'Nothing is due until schedule resume.' }),
  dryRun: flag({ help: 'Only check the schedule, and show when it would be due.' }),
}

export const schedule = defineCommand({
  summary: 'Submit a graph again and again: add, list, look at, pause, resume, trigger and delete schedules.',
  usage:
    'add FILE --cron "0 3 * * *" [--timezone Europe/Berlin] [--dry-run] | [list] | files | get NAME | next NAME | trigger NAME | pause NAME | resume NAME | delete NAME',
  settings: { ...graphSettings, ...addSettings },
  maxArguments: 2,
  async run({ values, positionals: [asked = 'list', ...rest], given, client }) {
    const verb = verbOf('schedule', asked, VERBS, SYNONYMS)
    if (verb === 'add') {
      const graph = await graphOf(rest, values)
      const own = graph.schedule
      const name = values.name === '' ? (own?.name ?? nameOf(graph.name)) : values.name
      const fields =
        own === undefined ? fieldsOf(values) : { ...withoutTiming(own.fields, given), ...givenFields(values, given) }
      const answer = await inFile(graph, client.call(putRequest(name, fields, graph, values.dryRun)))
      return { ...success(answer as Schedule), warnings: failureLines((answer as Schedule).warnings) }
    }
    const odd = [...given].find((key) => Object.hasOwn(addSettings, key) || Object.hasOwn(graphSettings, key))
    if (odd !== undefined) throw new UsageError(`--${flagName(odd)} belongs to schedule add, not to ${verb}`)
    const [name] = rest
    if ((verb === 'list' || verb === 'files') && name !== undefined)
      throw new UsageError(`unexpected argument "${name}" for schedule ${verb}`)
    if (verb === 'files') {
      const files = (await client.list({ method: 'GET', path: '/schedule-files' })).body as readonly ScheduleFile[]
      return {
        data: { files },
        exitCode: EXIT.success,
        table: async (look) => (await import('../table/schedules.ts')).scheduleFilesTable(files, look),
      }
    }
    if (verb === 'list') {
      const schedules = (await client.list({ method: 'GET', path: '/schedules' })).body as readonly ScheduleSummary[]
      return {
        data: { schedules },
        exitCode: EXIT.success,
        table: async (look) => (await import('../table/schedules.ts')).schedulesTable(schedules, look),
      }
    }
    if (name === undefined || name === '') throw new UsageError(`schedule ${verb} needs NAME (see schedule --help)`)
    const path = pathOf(name)
    if (verb === 'get') return success((await client.call({ method: 'GET', path })) as Schedule)
    if (verb === 'next') {
      const { next } = (await client.call({ method: 'GET', path })) as Schedule
      return success({ name, next })
    }
    if (verb === 'delete') {
      await client.call({ method: 'DELETE', path })
      return success({ name, deleted: true })
    }
    return success((await client.call({ method: 'POST', path: `${path}/${verb}` })) as object)
  },
})

const pathOf = (name: string): string => `/schedules/${encodeURIComponent(name)}`

export function nameOf(file: string): string {
  if (file === 'standard input') throw new UsageError('a schedule from standard input needs --name')
  return nameOfFile(file)
}

/** The graph goes on as it is: numbers may be larger than those of JavaScript. */
export function putRequest(name: string, fields: object, { bytes }: Pick<GivenGraph, 'bytes'>, isDryRun: boolean) {
  const given = JSON.stringify(fields).slice(1, -1)
  const body = Buffer.concat([
    Buffer.from(`{${given}${given && ','}"graph":`),
    withoutByteOrderMark(bytes),
    Buffer.from('}'),
  ])
  return { method: 'PUT', path: `${pathOf(name)}${isDryRun ? '?dry_run=true' : ''}`, body } as const
}

type AddValues = SettingValues<typeof addSettings>
type Given = ReadonlySet<string>

/** What flags say instead of the file. */
function givenFields(values: AddValues, given: Given): object {
  const isGiven = (field: string) => given.has(field.replace(/_(.)/, (_, letter: string) => letter.toUpperCase()))
  return Object.fromEntries(Object.entries(fieldsOf(values)).filter(([field]) => isGiven(field)))
}

/** The fields of the file; without its times if flags give others. */
function withoutTiming(fields: Readonly<Record<string, unknown>>, given: Given): object {
  if (!['cron', 'every', 'at'].some((name) => given.has(name))) return fields
  const { cron: _, every: __, at: ___, timezone: ____, ...others } = fields
  return others
}

/** What was given, as the service takes it. */
function fieldsOf(values: AddValues) {
  const { cron, every, at, timezone, overlap, catchUp, jitter, start, end, keep, onFailure, paused } = values
  const texts = Object.entries({ cron, at, timezone, start, end }).filter(([, value]) => value !== '')
  return {
    ...Object.fromEntries(texts),
    ...(every !== 0 && { every }),
    ...(jitter !== 0 && { jitter }),
    ...(onFailure !== '' && { on_failure: { url: onFailure } }),
    ...{ overlap, catch_up: catchUp, keep, paused },
  }
}
