/** The metrics and log messages of a service as Markdown tables, from their declarations. */
import type { LogEvents } from '../shared/logs/events/event.ts'
import type { Metric } from '../shared/logs/prometheus.ts'
import { markdownTable } from './markdown-table.ts'

export const metricsTable = (metrics: readonly Pick<Metric<never>, 'name' | 'type' | 'help' | 'labels'>[]): string =>
  markdownTable(
    ['metric', 'type', 'labels', 'what it measures'],
    metrics.map(({ name, type, labels = {}, help }) => [
      `\`${name}\``,
      type,
      Object.entries(labels)
        .map(([label, values]) => `\`${label}\`: ${values}`)
        .join('; '),
      help,
    ]),
  )

const LEVELS = ['error', 'warn', 'info', 'debug'] as const

/** The most severe first. */
export const logTable = (events: LogEvents): string =>
  markdownTable(
    ['level', '`msg`', 'when', 'fields'],
    LEVELS.flatMap((level) =>
      Object.entries(events)
        .filter(([, event]) => event.level === level)
        .map(([msg, { when, fields }]) => [level, msg, when, fieldList(fields)]),
    ),
  )

export const contextTable = (fields: Readonly<Record<string, string>>): string =>
  markdownTable(
    ['field', 'meaning'],
    Object.entries(fields).map(([name, meaning]) => [`\`${name}\``, meaning]),
  )

const fieldList = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, meaning]) => `\`${name}\`: ${meaning.replace(/\.$/, '')}`)
    .join('; ')
