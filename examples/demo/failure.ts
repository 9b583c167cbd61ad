/** Describes a failed step: its record, its resource use, and a remedy. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ResourceUsage } from '../../shared/contract/runtime.ts'
import { formatDuration } from '../../shared/text/live-view/frame.ts'
import { wrap } from '../../shared/text/live-view/palette.ts'
import { oneLine } from './results.ts'
import { type RuntimeResult, runtimeResultOf } from './runtime-result.ts'

const NAME_COLUMNS = 8
const INDENT = 3 + NAME_COLUMNS

/** A heading, then a name and what is to be said under it, in lines of at most `columns` columns where words allow it. */
export function failureWords(record: TaskRecord, columns: number): string[] {
  const { code, message } = record.runtime?.error ?? { code: 'unknown', message: record.error ?? '' }
  const result = runtimeResultOf(record)
  const lines: [string, string][] = [
    ['error', `${code}: ${message}`],
    ...(result === undefined ? [] : evidenceOf(result)),
    ['to do', remedyOf(code, result)],
  ]
  return [
    ` ${record.id} failed. What GET /tasks/${record.id} says of it:`,
    ...lines.flatMap(([name, text]) =>
      wrap(text, columns - INDENT).map((line, i) => `   ${(i === 0 ? name : '').padEnd(NAME_COLUMNS)}${line}`),
    ),
  ]
}

function evidenceOf({ usage, stderr, execution_plan, logs }: RuntimeResult): [string, string][] {
  const { memory_bytes, memory_enforced, oom_detection } = execution_plan.resource_enforcement
  const how = !memory_enforced
    ? 'not enforced here'
    : oom_detection
      ? 'by a memory cgroup'
      : 'as address space, RLIMIT_AS'
  const said = oneLine(stderr)
  return [
    ...(memory_bytes === undefined
      ? []
      : [['limit', `${formatBytes(memory_bytes)} of memory, ${how}`] as [string, string]]),
    ...(usage === undefined ? [] : [['usage', usageWords(usage)] as [string, string]]),
    ['stderr', said === '' ? 'nothing: it had no time to say anything' : said],
    ['logs', logs.stderr],
  ]
}

function usageWords({
  duration_ms,
  user_cpu_ms = 0,
  system_cpu_ms = 0,
  max_rss_bytes,
  memory_peak_bytes,
}: ResourceUsage): string {
  return [
    formatDuration(duration_ms),
    `${formatDuration(user_cpu_ms + system_cpu_ms)} of CPU`,
    ...(max_rss_bytes === undefined ? [] : [`at most ${formatBytes(max_rss_bytes)} resident in a process`]),
    ...(memory_peak_bytes === undefined ? [] : [`at most ${formatBytes(memory_peak_bytes)} together`]),
  ].join(', ')
}

function remedyOf(code: string, result: RuntimeResult | undefined): string {
  if (code === 'memory_limit_exceeded') return 'raise limits.memory_bytes, or hold less in memory at a time'
  const { memory_enforced = false, oom_detection = false } = result?.execution_plan.resource_enforcement ?? {}
  if (code === 'exit_nonzero' && memory_enforced && !oom_detection) {
    return 'read what it said: its memory was limited as address space, so it was refused more and ended by itself. If it was that, raise limits.memory_bytes; in linux_sandbox with a memory cgroup the error would be memory_limit_exceeded (taskmill-runtime doctor)'
  }
  return 'read what it said, and all of it in the logs'
}

export function formatBytes(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024
  return `${Number.isInteger(mebibytes) ? mebibytes : mebibytes.toFixed(1)} MiB`
}
