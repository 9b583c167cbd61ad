/**
 * The schedules of all replicas: a row for each, and a row for each graph that it has submitted lately.
 *
 * A graph of a schedule is written in one turn with a change of the version that its replica has read, and with its row of
 * `schedule_run`. Both the number of that version and the due time are unique there. So of two replicas that submit for the same due
 * time one has its turn refused, however late the turn comes.
 *
 * The row of `schedule_change` is locked by each other change and counts them, so that a look at unchanged schedules reads one row.
 */
import type { SQL } from 'bun'
import type { ScheduleDefinition, ScheduleProgress } from '../../rules/schedule.ts'
import type { KeptSchedule } from '../kept-schedules.ts'
import { CHANNEL, SCHEDULES } from './database.ts'
import { SCHEMA } from './schema-name.ts'
import type { AddParameter, NewGraph } from './turn-writes.ts'

/** Rows of graphs that a schedule has submitted, counted by its changes. Older ones are removed with the next graph. */
export const MAX_RUN_ROWS = 1_000

/** A schedule begins with a version above those of an earlier one with its name. */
const VERSIONS_PER_SCHEDULE = 2 ** 20

/** Part of the statement of a turn: how far schedules are with its graphs. If one was changed meanwhile, its row of `schedule_run` conflicts with itself. */
export function scheduleChanges(graphs: readonly NewGraph[], add: AddParameter): string {
  const rows = graphs.flatMap(({ ordinal, schedule }) =>
    schedule === undefined ? [] : { ...schedule, graph: ordinal },
  )
  if (rows.length === 0) return ''
  const run = 'select name, version + 1, due, graph from sx'
  return `,
    sx as materialized (select x.* from json_to_recordset(${add(rows)}::json)
      x (name text, version bigint, progress text, due bigint, graph bigint), fence),
    su as (update ${SCHEMA}.schedule s set version = s.version + 1, progress = sx.progress
      from sx where s.name = sx.name and s.version = sx.version returning s.name),
    sr as (insert into ${SCHEMA}.schedule_run (schedule, number, due, graph)
      ${run} union all ${run} where not exists (select from su where su.name = sx.name)),
    sd as (delete from ${SCHEMA}.schedule_run r using sx
      where r.schedule = sx.name and r.number <= sx.version - ${MAX_RUN_ROWS})`
}

/** As `KeptSchedules.read`. A row that is no schedule is left out. */
export async function readSchedules(
  sql: SQL,
  known: ReadonlyMap<string, number>,
  name?: string,
): Promise<Map<string, KeptSchedule | undefined>> {
  const versions = [...known].map(([name, version]) => ({ name, version }))
  const asked = name === undefined ? versions : versions.filter((each) => each.name === name)
  const rows: ScheduleRow[] = await sql.unsafe(
    `select s.name, s.version, case when k.name is null then s.definition end as definition,
       case when k.name is null then s.progress end as progress
     from ${SCHEMA}.schedule s left join json_to_recordset($1::json) k (name text, version bigint)
       on k.name = s.name and k.version = s.version where $2::text is null or s.name = $2`,
    [asked, name ?? null],
  )
  const found = new Map<string, KeptSchedule | undefined>()
  const there = new Set(rows.map((row) => row.name))
  for (const each of asked) if (!there.has(each.name)) found.set(each.name, undefined)
  for (const { name, version, definition, progress } of rows) {
    if (definition === null || progress === null) continue
    found.set(name, {
      definition: JSON.parse(definition) as ScheduleDefinition,
      progress: JSON.parse(progress) as ScheduleProgress,
      version: Number(version),
    })
  }
  return found
}

/** Its JSON is null if the version is known. */
interface ScheduleRow {
  readonly name: string
  readonly version: string
  readonly definition: string | null
  readonly progress: string | null
}

/**
 * Writes `next` instead of the version `known`; undefined: the schedule is gone, or was not there. Returns the version then;
 * undefined if another replica was first, and nothing was written. Rings.
 */
export async function writeSchedule(
  sql: SQL,
  settings: string,
  name: string,
  known: number | undefined,
  next: Omit<KeptSchedule, 'version'> | undefined,
): Promise<number | undefined> {
  const values: unknown[] = [name]
  const add: AddParameter = (value) => `$${values.push(value)}`
  const schedules = `${SCHEMA}.schedule`
  let change: string
  if (next === undefined) {
    change = `delete from ${schedules} s using c where s.name = $1 and s.version = ${add(known)} returning s.version`
  } else {
    const [definition, progress] = [add(JSON.stringify(next.definition)), add(JSON.stringify(next.progress))]
    change =
      known === undefined
        ? `insert into ${schedules} (name, version, definition, progress)
             select $1, c.changes * ${VERSIONS_PER_SCHEDULE}, ${definition}::text, ${progress}::text from c
             on conflict do nothing returning version`
        : `update ${schedules} s set version = s.version + 1, definition = ${definition}, progress = ${progress} from c
             where s.name = $1 and s.version = ${add(known)} returning s.version`
  }
  const { settled = -1, waiting = [] } = next?.progress ?? {}
  const toCome =
    next === undefined ? 'true' : `(r.due > ${add(settled)} or r.due = any(${add(`{${waiting.join()}}`)}::bigint[]))`
  const [row] = await sql.unsafe(
    `with settings as materialized (select ${settings}),
     c as (update ${SCHEMA}.schedule_change set changes = changes + 1 from settings returning changes),
     w as (${change}),
     d as (delete from ${SCHEMA}.schedule_run r using w where r.schedule = $1 and ${toCome})
     select version, pg_notify('${CHANNEL}', '${SCHEDULES}') from w`,
    values,
  )
  return row === undefined ? await versionIfThere(sql, name, next) : Number(row.version)
}

/** An answer may get lost, and then a change is repeated. Undefined: what is there is not `next`. */
async function versionIfThere(
  sql: SQL,
  name: string,
  next: Omit<KeptSchedule, 'version'> | undefined,
): Promise<number | undefined> {
  const [row] = await sql`select version, definition, progress from ${sql(SCHEMA)}.schedule where name = ${name}`
  if (row === undefined) return next === undefined ? 0 : undefined
  const isNext = row.definition === JSON.stringify(next?.definition) && row.progress === JSON.stringify(next?.progress)
  return isNext ? Number(row.version) : undefined
}
