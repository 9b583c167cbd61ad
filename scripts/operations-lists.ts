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

const LEVELS = ['error', 'warn', 'info', 'debug'] as const

/** Levels whose messages ask for something. The others say themselves what has happened. */
const ALARMING: readonly string[] = ['error', 'warn']

/** Each message with the moment at which it comes and its fields, the most severe first. Leaves out `common` fields. */
export const logList = (events: LogEvents, common: ReadonlySet<string>): string =>
  LEVELS.flatMap((level) => {
    const ofLevel = Object.entries(events).filter(([, event]) => event.level === level)
    const items = ofLevel.map(([msg, { when, fields }]) =>
      [`- **${msg}**.`, ALARMING.includes(level) ? when : '', fieldList(fields, common)].filter(Boolean).join(' '),
    )
    return items.length === 0 ? [] : [`Level \`${level}\`:\n\n${items.join('\n')}`]
  }).join('\n\n')

function fieldList(fields: Readonly<Record<string, string>>, common: ReadonlySet<string>): string {
  const words = Object.entries(fields)
    .filter(([name, meaning]) => !common.has(`${name} ${meaning}`))
    .map(([name, meaning]) => `\`${name}\`: ${meaning.replace(/\.$/, '')}`)
  return words.length === 0 ? '' : `(${words.join('; ')})`
}

/** Messages that must have a field with one meaning before it is explained for all of them. */
const MANY = 3

/** Fields with the same meaning in many messages: the name, and the meaning. */
export function commonFields(...lists: readonly LogEvents[]): readonly (readonly [string, string])[] {
  const all = lists.flatMap((events) => Object.values(events).flatMap(({ fields }) => Object.entries(fields)))
  const counts = new Map<string, number>()
  for (const [name, meaning] of all) counts.set(`${name} ${meaning}`, (counts.get(`${name} ${meaning}`) ?? 0) + 1)
  const isFirst = ([name, meaning]: readonly [string, string], at: number) =>
    all.findIndex((other) => other[0] === name && other[1] === meaning) === at
  return all.filter((field, at) => isFirst(field, at) && counts.get(`${field[0]} ${field[1]}`)! >= MANY)
}

export const logFieldsTable = (fields: readonly (readonly [string, string])[]): string =>
  markdownTable(
    ['field', 'meaning'],
    fields.map(([name, meaning]) => [`\`${name}\``, meaning]),
  )
