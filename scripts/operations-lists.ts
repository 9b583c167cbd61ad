/** The metrics and log messages of a service in Markdown, from their declarations. */
import type { LogEvents } from '../shared/logs/events/event.ts'
import type { Metric } from '../shared/logs/prometheus.ts'
import { markdownTable } from './markdown-table.ts'

type ListedMetric = Pick<Metric<never>, 'name' | 'type' | 'help' | 'labels'>

/** Neither the buckets of a histogram, which its samples name, nor metrics that mean the same as one of `others`. */
export const metricsList = (metrics: readonly ListedMetric[], others: readonly ListedMetric[] = []): string =>
  metrics
    .filter(
      ({ name, help }) => !others.some((other) => other.help === help && meaningOf(other.name) === meaningOf(name)),
    )
    .map(({ name, type, labels = {}, help }) => {
      const values = Object.entries(labels)
        .filter(([label]) => label !== 'le')
        .map(([label, some]) => `\`${label}\`: ${some}`)
      return `- \`${name}\` (${[type, ...values].join('; ')}). ${help}`
    })
    .join('\n')

/** The name without its service. */
const meaningOf = (name: string) => name.replace(/^service_(control|runtime)_/, '')

/** Levels whose messages ask for something. The others say themselves what has happened. */
const ALARMING = ['error', 'warn'] as const

/** Errors, then warnings, each with the moment at which it comes and the names of its fields. Leaves out `common` fields. */
export const logList = (events: LogEvents, common: ReadonlySet<string>): string =>
  ALARMING.flatMap((level) => {
    const ofLevel = Object.entries(events).filter(([, event]) => event.level === level)
    const items = ofLevel.map(([msg, { when, fields }]) => {
      const names = Object.keys(fields).filter((name) => !common.has(name))
      const list = names.length === 0 ? '' : `(${names.map((name) => `\`${name}\``).join(', ')})`
      return [`- **${msg}**.`, when, list].filter(Boolean).join(' ')
    })
    return items.length === 0 ? [] : [`Level \`${level}\`:\n\n${items.join('\n')}`]
  }).join('\n\n')

export const logFieldsTable = (fields: Readonly<Record<string, string>>): string =>
  markdownTable(
    ['field', 'meaning'],
    Object.entries(fields).map(([name, meaning]) => [`\`${name}\``, meaning]),
  )
