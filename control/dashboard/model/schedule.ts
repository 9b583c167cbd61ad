/** What the page says of schedules, and what its form sends. Pure. */
import type { Schedule, ScheduleSummary } from '../../../shared/contract/schedules.ts'
import { countText, durationText } from './amounts.ts'

/** When a schedule is due: one of three fields says it. */
export const RULES = ['cron', 'every', 'at'] as const
export type Rule = (typeof RULES)[number]

type Ruled = Pick<ScheduleSummary, Rule | 'timezone'>

/** The rule in words: `cron 0 3 * * * in Europe/Berlin`, `every 1 h 00 m`, `once, at 2030-01-31T09:30:00Z`. */
export function ruleText({ cron, every, at, timezone }: Ruled): string {
  if (cron !== undefined) return `cron ${cron} in ${timezone ?? 'UTC'}`
  return every === undefined ? `once, at ${at}` : `every ${durationText(every)}`
}

/** The zone in which a rule names times of day. */
export const zoneOf = ({ cron, timezone = 'UTC' }: Ruled): string | undefined =>
  cron === undefined ? undefined : timezone

/** `time` on the clock of `timeZone`: `2026-03-01 14:05:09`. Empty if this browser does not know the zone. */
export function timeIn(time: string, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' }).format(
      new Date(time),
    )
  } catch {
    return ''
  }
}

/** What went wrong or waits, in sentences that are only there if it did. */
export function troubles({ missed, skipped, waiting, last_error }: ScheduleSummary): readonly string[] {
  const times = (count: number) => (count === 1 ? '1 due time' : `${countText(count)} due times`)
  return [
    ...(missed > 0 ? [`${times(missed)} missed: nobody looked, or the graph was refused.`] : []),
    ...(skipped > 0 ? [`${times(skipped)} skipped: a graph of the schedule ran.`] : []),
    ...(waiting > 0
      ? [`${times(waiting)} ${waiting === 1 ? 'waits' : 'wait'} for the end of a graph, or for room.`]
      : []),
    ...(last_error === undefined ? [] : [`The last graph was refused: ${last_error}`]),
  ]
}

/** What is typed into the form. */
export interface Draft {
  readonly name: string
  readonly rule: Rule
  /** Of the rule. `every` is in seconds. */
  readonly when: string
  readonly timezone: string
  readonly overlap: string
  readonly catch_up: string
  /** In seconds. */
  readonly jitter: string
  readonly start: string
  readonly end: string
  readonly keep: string
  readonly paused: boolean
  /** As JSON. */
  readonly on_failure: string
  readonly params: string
  readonly graph: string
}
export type DraftField = keyof Draft

const EXAMPLE = { tasks: [{ id: 'hello', type: 'shell', params: { command: 'echo', args: ['hello'] } }] }

export const NEW_DRAFT: Draft = {
  ...{ name: '', rule: 'cron', when: '0 3 * * *', timezone: 'UTC', overlap: 'skip', catch_up: 'none', paused: false },
  ...{ jitter: '', start: '', end: '', keep: '', on_failure: '', params: '', graph: JSON.stringify(EXAMPLE, null, 2) },
}

const seconds = (ms: number | undefined): string => (ms === undefined ? '' : String(ms / 1_000))

const jsonText = (value: unknown): string => (value == null ? '' : JSON.stringify(value, null, 2))

export function draftOf({ name, cron, every, at, params, on_failure, graph, ...schedule }: Schedule): Draft {
  const { timezone = 'UTC', overlap, catch_up, jitter, start = '', end = '', keep, paused } = schedule
  const rule = cron !== undefined ? 'cron' : every !== undefined ? 'every' : 'at'
  return {
    ...{ name, rule, timezone, overlap, catch_up, start, end, paused },
    ...{ when: cron ?? at ?? seconds(every), jitter: seconds(jitter), keep: keep === undefined ? '' : String(keep) },
    ...{ on_failure: jsonText(on_failure), params: jsonText(params), graph: jsonText(graph) },
  }
}

/** A fault of one field. Without a field it is one of all. */
export interface DraftFault {
  readonly field: DraftField | undefined
  readonly message: string
}

/** The body of `PUT /schedules/{name}`, or the field whose text cannot be sent. */
export function bodyOf(draft: Draft): { readonly body: string } | DraftFault {
  const { rule, when, timezone, overlap, catch_up, paused } = draft
  const body: Record<string, unknown> = { overlap, catch_up, paused }
  body[rule] = rule === 'every' ? milliseconds(when) : when.trim()
  if (rule === 'cron') body.timezone = timezone.trim()
  if (draft.jitter.trim() !== '') body.jitter = milliseconds(draft.jitter)
  for (const field of ['start', 'end'] as const) if (draft[field].trim() !== '') body[field] = draft[field].trim()
  if (draft.keep.trim() !== '') body.keep = Number(draft.keep)
  for (const field of ['on_failure', 'params', 'graph'] as const) {
    if (field !== 'graph' && draft[field].trim() === '') continue
    try {
      body[field] = JSON.parse(draft[field])
    } catch (error) {
      return { field, message: `This is not JSON: ${(error as Error).message}` }
    }
  }
  return { body: JSON.stringify(body) }
}

/** A text that is no number is sent as it is: the service refuses it by the name of the field. */
const milliseconds = (text: string): number | string => {
  const ms = Math.round(Number(text) * 1_000)
  return text.trim() === '' || Number.isNaN(ms) ? text : ms
}

/** The field that an error of the service names in front: `cron: …`, `/graph: …`. */
export function faultAt(message: string, rule: Rule): DraftFault {
  const [, name] = /^(?:invalid JSON: )?\/?([a-z_]+)[.:/ ]/.exec(message) ?? []
  const field = name === rule ? 'when' : FIELDS.find((known) => known === name)
  return { field, message }
}

const FIELDS = [
  'name',
  'timezone',
  'overlap',
  'catch_up',
  'jitter',
  'start',
  'end',
  'keep',
  'on_failure',
  'params',
  'graph',
] as const
