/** Whether a log line is as it was declared. */
import { bothLogEvents } from '../../shared/logs/events/both.ts'
import { controlLogEvents } from '../../shared/logs/events/control.ts'
import { CONTEXT_FIELDS, type LogEvents } from '../../shared/logs/events/event.ts'
import { runtimeLogEvents } from '../../shared/logs/events/runtime.ts'

const DECLARED: LogEvents = { ...bothLogEvents, ...controlLogEvents, ...runtimeLogEvents }

/** Fields of every line. */
const COMMON = new Set(['time', 'level', 'service', 'msg', ...Object.keys(CONTEXT_FIELDS)])

export function faultsOfLogLine(line: Readonly<Record<string, unknown>>): string[] {
  const msg = String(line.msg)
  const event = DECLARED[msg]
  if (event === undefined) return [`"${msg}" is not declared`]
  const unknown = Object.keys(line).filter((name) => !COMMON.has(name) && !Object.hasOwn(event.fields, name))
  return [
    ...(line.level === event.level ? [] : [`"${msg}" has level ${line.level}, declared ${event.level}`]),
    ...unknown.map((name) => `"${msg}" has the field ${name}, which is not declared`),
  ]
}
