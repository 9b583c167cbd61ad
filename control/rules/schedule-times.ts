/**
 * The due times of a schedule, by `cron`, `every` or `at`. Pure.
 *
 * croner reads cron expressions and knows time zones. A time of day that a change of the clocks leaves out is due as soon
 * as the clocks have changed; one that they repeat is due once, but each time if every hour or minute is. Loaded once there
 * is a schedule.
 */
import { Cron } from 'croner'
import { badRequest } from '../../shared/contract/errors.ts'
import type { DueTimes, GivenFields } from './schedule.ts'

/** Throws 400 for an expression or a time zone that is none. `since` is when the schedule was put: milliseconds since 1970. */
export function dueTimes(fields: GivenFields, since: number): DueTimes {
  const { start, end } = fields
  const from = start === undefined ? Number.NEGATIVE_INFINITY : Date.parse(start)
  const to = end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end)
  const unbounded = unboundedTimes(fields, since)
  return {
    next(after) {
      const due = unbounded(Math.max(after, from - 1))
      return due !== undefined && due <= to ? due : undefined
    },
  }
}

function unboundedTimes({ cron, every, at, timezone = 'UTC', start }: GivenFields, since: number): DueTimes['next'] {
  if (cron !== undefined) return cronTimes(cron, timezone)
  if (every !== undefined) {
    const first = start === undefined ? since + every : Date.parse(start)
    return (after) => (after < first ? first : first + (Math.floor((after - first) / every) + 1) * every)
  }
  const time = Date.parse(at!)
  return (after) => (time > after ? time : undefined)
}

function cronTimes(cron: string, timezone: string): DueTimes['next'] {
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch {
    throw badRequest(
      `timezone: there is no ${JSON.stringify(timezone)} (expected a name such as "Europe/Berlin" or "UTC")`,
    )
  }
  if (cron.includes(':')) throw badRequest('cron: expected five or six fields, got a time (give it as at)') // croner takes times
  const count = cron.trim().split(/\s+/).length
  if (!cron.trim().startsWith('@') && count !== 5 && count !== 6)
    throw badRequest(`cron: expected five or six fields, as in "0 3 * * *", got ${count}`)
  try {
    const job = new Cron(cron, { timezone, paused: true, mode: '5-or-6-parts' })
    return (after) => job.nextRun(new Date(after))?.getTime()
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, '')
    throw badRequest(`cron: ${why} (expected five or six fields, as in "0 3 * * *")`)
  }
}
