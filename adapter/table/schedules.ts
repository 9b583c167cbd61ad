/** Schedules as text. Pure. */
import type { ScheduleFile, ScheduleSummary } from '../../shared/contract/schedules.ts'
import { formatDuration } from '../../shared/settings/duration.ts'
import { alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { timeAgo } from './words.ts'

export function schedulesTable(schedules: readonly ScheduleSummary[], look: Look): string[] {
  if (schedules.length === 0) return [look.paint('dim', 'no schedules')]
  const rows = schedules.map((schedule): Cell[] => [
    { text: schedule.name, style: 'bold' },
    { text: whenOf(schedule) },
    { text: schedule.paused ? 'paused' : (schedule.next[0] ?? 'over'), ...(schedule.paused && { style: 'yellow' }) },
    { text: schedule.last_success === undefined ? '' : timeAgo(schedule.last_success, look.nowMs) },
    { text: String(schedule.missed), isRight: true, ...(schedule.missed > 0 && { style: 'red' }) },
    { text: String(schedule.skipped), isRight: true },
  ])
  return alignedRows(['NAME', 'WHEN', 'NEXT', 'LAST SUCCESS', 'MISSED', 'SKIPPED'], rows, look)
}

export function scheduleFilesTable(files: readonly ScheduleFile[], look: Look): string[] {
  if (files.length === 0) return [look.paint('dim', 'no files: the service has no --schedules-dir, or it is empty')]
  const rows = files.map(({ file, schedule = '', error = '' }): Cell[] => [
    { text: file, style: 'bold' },
    { text: schedule },
    { text: error, style: 'red' },
  ])
  return alignedRows(['FILE', 'SCHEDULE', 'ERROR'], rows, look)
}

const whenOf = ({ cron, every, at, timezone }: ScheduleSummary): string => {
  if (every !== undefined) return `every ${formatDuration(every)}`
  if (at !== undefined) return `at ${at}`
  return timezone === undefined ? `${cron}` : `${cron} ${timezone}`
}
