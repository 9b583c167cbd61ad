/**
 * The optional fields of a graph beside `tasks`. Pure.
 *
 * An invalid field refuses the submission, with an error that names the field. Most graphs have none of these fields
 * and share one object.
 */
import {
  CALLBACK_EVENTS,
  CALLBACK_URL,
  type GraphCallback,
  MAX_CALLBACK_URL_CHARACTERS,
} from '../../shared/contract/callbacks.ts'
import {
  type GraphConcurrency,
  MAX_GROUP_CHARACTERS,
  MAX_GROUP_LIMIT,
  ON_FULL,
} from '../../shared/contract/graph-groups.ts'
import { type NotBefore, notBeforeExpected, priorityExpected } from '../../shared/contract/start-order.ts'
import {
  GraphFields,
  LABEL_NAME,
  MAX_GRAPH_NAME_CHARACTERS,
  MAX_LABEL_VALUE_CHARACTERS,
  MAX_LABELS,
  OnEndEntry,
} from '../../shared/contract/submission.ts'
import { didYouMean, firstUnknown, quoted } from '../../shared/request/unknown-names.ts'
import { isObject } from '../../shared/text/json.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { checkOf } from '../json/schema-check.ts'
import { callbackHeadersFault } from './callback-headers.ts'
import { isNotBefore } from './not-before.ts'
import { onEndFault } from './on-end.ts'
import { type Parameters, parametersFault } from './parameters.ts'

/** As submitted. Absent fields are omitted. */
export interface GraphOptions {
  readonly name?: string
  readonly labels?: Readonly<Record<string, string>>
  /** `graph`: ids of tasks belong to the graph. Absent: they belong to the service. */
  readonly scope?: 'graph'
  readonly params?: Parameters
  /** That of its tasks without one of their own. */
  readonly priority?: number
  /** Milliseconds after the submission, or a time. */
  readonly not_before?: NotBefore
  readonly concurrency?: GraphConcurrency
  readonly callback?: GraphCallback
  readonly on_end?: OnEndEntry[]
}

export const NO_GRAPH_OPTIONS: GraphOptions = Object.freeze({})

/** The names of the options, in the order in which they are checked. */
export const GRAPH_OPTIONS = Object.keys(GraphFields.properties) as (keyof GraphOptions)[]

const check = checkOf(GraphFields)
const entryCheck = checkOf(OnEndEntry)
const ENTRY_FIELDS = Object.keys(OnEndEntry.properties)

/** The options among `fields`. Undefined if one of them is invalid. */
export function graphOptions(fields: object): GraphOptions | undefined {
  const given = fields as Readonly<Record<string, unknown>>
  if (GRAPH_OPTIONS.every((name) => given[name] == null)) return NO_GRAPH_OPTIONS
  if (!check.accepts(fields) || parametersFault(given.params) !== undefined) return undefined
  if (!isNotBefore(given.not_before) || headersFault(given.callback) !== undefined) return undefined
  if (given.on_end != null && onEndFault(given.on_end as readonly OnEndEntry[]) !== undefined) return undefined
  return Object.fromEntries(GRAPH_OPTIONS.filter((name) => given[name] != null).map((name) => [name, given[name]]))
}

/** The fault of the options among `fields`, for which `graphOptions` returns undefined. */
export function graphOptionsFault(fields: object): string {
  const { name, labels, scope, params, priority, not_before, concurrency, callback, on_end } = fields as Readonly<
    Record<string, unknown>
  >
  return (
    nameFault(name) ??
    labelsFault(labels) ??
    scopeFault(scope) ??
    parametersFault(params) ??
    priorityFault(priority) ??
    notBeforeFault(not_before) ??
    concurrencyFault(concurrency) ??
    callbackFault(callback) ??
    entriesFault(on_end) ??
    ''
  )
}

function nameFault(name: unknown): string | undefined {
  if (name == null || check.accepts({ name })) return undefined
  if (typeof name !== 'string') return 'name: expected string'
  return `name: expected 1 to ${MAX_GRAPH_NAME_CHARACTERS} characters, none of them a control character`
}

const scopeFault = (scope: unknown): string | undefined =>
  scope == null || scope === 'graph' ? undefined : 'scope: expected "graph"'

const priorityFault = (priority: unknown): string | undefined =>
  priority == null || check.accepts({ priority }) ? undefined : `priority: expected ${priorityExpected}`

const notBeforeFault = (not_before: unknown): string | undefined =>
  not_before == null || (check.accepts({ not_before }) && isNotBefore(not_before))
    ? undefined
    : `not_before: expected ${notBeforeExpected}`

/** Maximum characters of a label in an error. */
const MAX_SHOWN_LABEL = 100

function labelsFault(labels: unknown): string | undefined {
  if (labels == null) return undefined
  if (!isObject(labels)) return 'labels: expected object of strings'
  const entries = Object.entries(labels)
  if (entries.some(([, value]) => typeof value !== 'string')) return 'labels: expected object of strings'
  if (entries.length > MAX_LABELS) return `labels: expected at most ${MAX_LABELS} labels, got ${entries.length}`
  for (const [label, value] of entries as [string, string][]) {
    const shown = JSON.stringify(label.slice(0, MAX_SHOWN_LABEL)).toWellFormed()
    if (!new RegExp(LABEL_NAME).test(label)) {
      return `labels: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got ${shown}`
    }
    if (value.length > MAX_LABEL_VALUE_CHARACTERS) {
      return `labels: expected values of at most ${MAX_LABEL_VALUE_CHARACTERS} characters, got ${value.length} in ${shown}`
    }
  }
  return undefined
}

function concurrencyFault(concurrency: unknown): string | undefined {
  if (concurrency == null || check.accepts({ concurrency })) return undefined
  if (!isObject(concurrency)) return 'concurrency: expected object'
  const { group, limit } = concurrency
  if (!check.accepts({ concurrency: { group } }))
    return `concurrency.group: expected string of 1 to ${MAX_GROUP_CHARACTERS} characters`
  return check.accepts({ concurrency: { group, limit } })
    ? `concurrency.on_full: expected ${ON_FULL.map((each) => `"${each}"`).join(', ')}`
    : `concurrency.limit: expected integer from 1 to ${MAX_GROUP_LIMIT}`
}

const headersFault = (callback: unknown): string | undefined =>
  isObject(callback) ? callbackHeadersFault(callback.headers) : undefined

function callbackFault(callback: unknown): string | undefined {
  const ofHeaders = headersFault(callback)
  if (callback == null || (check.accepts({ callback }) && ofHeaders === undefined)) return undefined
  if (!isObject(callback)) return 'callback: expected object'
  const { url, events } = callback
  if (typeof url !== 'string') return 'callback.url: expected string'
  if (url.length > MAX_CALLBACK_URL_CHARACTERS)
    return `callback.url: expected at most ${MAX_CALLBACK_URL_CHARACTERS} characters, got ${url.length}`
  if (!new RegExp(CALLBACK_URL).test(url)) return 'callback.url: expected an http: or https: address'
  if (ofHeaders !== undefined) return ofHeaders
  return events === undefined || Array.isArray(events)
    ? `callback.events: expected names of ${CALLBACK_EVENTS.join(', ')}`
    : 'callback.events: expected array of strings'
}

function entriesFault(on_end: unknown): string | undefined {
  if (on_end == null) return undefined
  if (check.accepts({ on_end })) return onEndFault(on_end as readonly OnEndEntry[])
  const i = Array.isArray(on_end) ? on_end.findIndex((entry) => !entryCheck.accepts(entry)) : -1
  if (i < 0) return `on_end: expected ${GraphFields.properties.on_end.expected}`
  const entry = (on_end as unknown[])[i]
  const other = isObject(entry) ? firstUnknown(entry, new Set(ENTRY_FIELDS)) : undefined
  if (other !== undefined)
    return `on_end[${i}]: unknown field ${quoted(other)}${didYouMean(nearestName(other, ENTRY_FIELDS))}`
  const { path, text } = entryCheck.faultOf(entry)
  return `on_end[${i}]${path && `.${path}`}: ${text}`
}
