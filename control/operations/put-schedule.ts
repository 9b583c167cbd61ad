/**
 * Creates or replaces a schedule. Its graph is checked as a submission is, so that a faulty one is refused now and not when
 * it is due.
 */
import { ScheduleCallback } from '../../shared/contract/callbacks.ts'
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import {
  MAX_SCHEDULE_NAME_CHARACTERS,
  SCHEDULE_NAME,
  type Schedule as ScheduleAnswer,
  ScheduleFields,
} from '../../shared/contract/schedules.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { didYouMean, eachUnknownField, quoted } from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { checkValue, decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields, refuseWrongForm } from '../json/request-fields.ts'
import { callbackHeadersFault } from '../rules/callback-headers.ts'
import { isNotBefore } from '../rules/not-before.ts'
import { type GivenFields, hasSameTimes, type OwningFile, type ScheduleDefinition } from '../rules/schedule.ts'
import { OWN_LABELS, scheduledFields } from '../schedules/scheduled-graph.ts'
import type { Schedule } from '../schedules/schedules.ts'
import { dryRun } from './dry-run.ts'
import type { GraphInput } from './graph-checks.ts'
import type { OperationParts } from './parts.ts'
import { scheduleAnswer } from './show-schedules.ts'

const FIELDS = ['graph', ...Object.keys(ScheduleFields.properties)]
const KNOWN_FIELDS: ReadonlySet<string> = new Set(FIELDS)
const ARRAYS = { graph: { tasks: true }, params: {} } as const

/**
 * `isNew`: there was none with this name. Resolves once the schedule is on disk; with `isDryRun` nothing is kept, and the answer
 * is what it would be. `file`: the one that it is from. Throws 400, 409, 413 and 503.
 */
export async function putSchedule(
  parts: OperationParts,
  name: string,
  body: Uint8Array,
  call: {
    readonly traceId: string
    readonly signal: AbortSignal
    readonly isDryRun?: boolean
    /** 412 if there is one with this name. */
    readonly isOnlyNew?: boolean
    readonly file?: OwningFile
  },
): Promise<{ schedule: ScheduleAnswer; isNew: boolean }> {
  const { schedules, keeper } = parts
  if (!SCHEDULE_NAME.test(name))
    throw badRequest(
      `name: expected 1 to ${MAX_SCHEDULE_NAME_CHARACTERS} letters, digits, ".", "_" or "-", beginning with a letter or digit`,
    )
  const { graph, fields: given } = await runCooperatively(decodeSchedule(parts, body))
  const { dueTimes } = await import('../rules/schedule-times.ts')
  dueTimes(given, schedules.now) // a faulty rule is told before a faulty graph
  if (given.on_failure !== undefined) parts.callbacks.check(given.on_failure, refuse, { field: 'on_failure' })
  const warnings = await checkedGraph(parts, { name, graph, fields: given }, call)
  await schedules.fresh() // --max-schedules counts all of them
  return schedules.change(name, async () => {
    const { now } = schedules
    const known = schedules.get(name)
    const { file } = call
    if (call.isOnlyNew && known !== undefined)
      throw new ServiceError(412, `there is a schedule ${name} already (leave out If-None-Match to replace it)`)
    if (call.isDryRun !== true) parts.scheduleFiles.assertMayPut(name, known?.definition, file)
    const fields = withPause(given, known?.definition, file)
    const isSame = known !== undefined && hasSameTimes(known.definition.fields, fields)
    const since = isSame ? known.definition.since : now
    const times = dueTimes(fields, since)
    if (!isSame && times.next(now) === undefined) refuse(neverDue(fields))
    const created_at = known?.definition.created_at ?? now
    const definition = { fields, graph, since, created_at, updated_at: now, ...(file !== undefined && { file }) }
    const wasPaused = known?.definition.fields.paused === true
    const isGoingOn = isSame && !wasPaused
    const answered = (schedule: Schedule) => ({
      schedule: { ...scheduleAnswer(schedule), ...(warnings.length > 0 && { warnings }) },
      isNew: known === undefined,
    })
    if (file !== undefined && known !== undefined && isUnchanged(known.definition, definition)) return answered(known)
    if (call.isDryRun) return answered(schedules.wouldBe(name, definition, times, isGoingOn))
    keeper.assertWritable()
    const answer = answered(await schedules.put(name, definition, times, isGoingOn))
    await keeper.kept('promise')
    return answer
  })
}

/** A file that was read again after a restart. */
const isUnchanged = (known: ScheduleDefinition, { fields, graph, file }: ScheduleDefinition): boolean =>
  Bun.deepEquals([known.fields, known.graph, known.file], [fields, graph, file])

/** Where its file does not say `paused`, a schedule stays as callers have paused or resumed it. */
function withPause(
  fields: GivenFields,
  known: ScheduleDefinition | undefined,
  file: OwningFile | undefined,
): GivenFields {
  if (file === undefined || file.decidesPause || known?.file?.decidesPause !== false) return fields
  const { paused } = known.fields
  return paused === undefined ? fields : { ...fields, paused }
}

const refuse = (message: string): never => {
  throw badRequest(message)
}

const neverDue = ({ cron, at, end }: GivenFields): string => {
  if (at !== undefined) return `at: ${at} is over, or not between start and end (give a time to come)`
  if (end !== undefined) return `end: nothing is due before ${end} (give a later time)`
  return `cron: ${JSON.stringify(cron)} is never due (no such date exists)`
}

function* decodeSchedule(
  { unknownFields }: OperationParts,
  body: Uint8Array,
): Steps<{ graph: object; fields: GivenFields }> {
  const given = yield* decodeJson(body, ARRAYS)
  if (!isObject(given)) throw invalidJson(`expected object with a graph, got ${jsonTypeOf(given)}`)
  refuseUnknownFields(given, { names: FIELDS }, unknownFields)
  const { graph } = given
  if (!isObject(graph)) throw invalidJson(`graph: expected object with a list of tasks, got ${jsonTypeOf(graph)}`)
  refuseWrongForm(given, ScheduleFields)
  const known = Object.entries(given).filter(([field]) => field !== 'graph' && KNOWN_FIELDS.has(field))
  const fields = withoutNulls(Object.fromEntries(known)) as GivenFields
  if (unknownFields === 'refuse')
    eachUnknownField(
      ScheduleCallback,
      fields.on_failure,
      ({ path, nearest }) => refuse(`unknown field ${quoted(path)}${didYouMean(nearest)}`),
      'on_failure',
    )
  checkFields(fields)
  return { graph, fields }
}

/** What the schema does not say. */
function checkFields(fields: GivenFields): void {
  const { cron, every, at, timezone, params, overlap = 'skip', catch_up, start, end, on_failure } = fields
  const timings = Object.entries({ cron, every, at }).filter(([, value]) => value !== undefined)
  if (timings.length !== 1) {
    const found = timings.length === 0 ? 'none' : timings.map(([name]) => name).join(' and ')
    refuse(`expected one of cron, every and at, got ${found}`)
  }
  for (const [name, value] of Object.entries({ at, start, end }))
    if (value !== undefined && !isNotBefore(value)) refuse(`${name}: there is no ${value} (the month has fewer days)`)
  if (timezone !== undefined && cron === undefined)
    refuse('timezone: belongs to cron (leave it out: every, at, start and end need none)')
  if (start !== undefined && end !== undefined && Date.parse(end) < Date.parse(start))
    refuse(`end: ${end} is before start (${start})`)
  if (catch_up === 'all' && (overlap === 'skip' || overlap === 'cancel'))
    refuse(
      `catch_up: "all" requires overlap "queue" or "allow" (with "${overlap}", one of the missed graphs would remain)`,
    )
  checkValue(params, 'params')
  const fault = callbackHeadersFault(on_failure?.headers, 'on_failure')
  if (fault !== undefined) refuse(fault)
}

/** The tasks that are certain to fail as things are now. Throws 400 for what refuses a submission. */
async function checkedGraph(
  parts: OperationParts,
  { name, graph, fields }: { readonly name: string; readonly graph: object; readonly fields: GivenFields },
  call: { readonly traceId: string; readonly signal: AbortSignal },
) {
  const { labels } = graph as { readonly labels?: unknown }
  const own = OWN_LABELS.find((label) => isObject(labels) && Object.hasOwn(labels, label))
  if (own !== undefined) refuse(`graph: labels: the service sets the label ${own} (leave it out)`)
  const submission = scheduledFields(name, graph, fields.params, 0) as unknown as GraphInput
  const { errors, warnings } = await dryRun(parts, { graph: submission }, { ...call, isBrief: true, isForLater: true })
  const fault = errors.find(({ fails }) => fails !== true)
  if (fault !== undefined) refuse(`graph: ${fault.message}`)
  const failures = errors.map(({ task_id = '', message }) => ({ task_id, message }))
  return [...failures, ...warnings]
}
