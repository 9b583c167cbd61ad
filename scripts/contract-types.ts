/**
 * client/contract.ts: the schemas of the wire as plain TypeScript types, so that programs that use the client need no
 * schema library. Each type has the descriptions of its schema.
 */
import type { TSchema } from '@sinclair/typebox'
import { ApprovalAnswer, ApprovalResult } from '../shared/contract/approval.ts'
import { Cache } from '../shared/contract/cache.ts'
import { GraphCallback } from '../shared/contract/callbacks.ts'
import {
  AttemptRecord,
  CancelledTask,
  CancelResponse,
  HealthResponse,
  ProgressEntry,
  ReusedFrom,
  RuntimeError,
  RuntimeRecord,
  TaskRecord,
} from '../shared/contract/control.ts'
import { ERROR_CODES } from '../shared/contract/error-codes.ts'
import { EVENT_KINDS, EventHeader, TaskEventState } from '../shared/contract/events.ts'
import { GraphDryRun, GraphFault } from '../shared/contract/graph-dry-run.ts'
import { GRAPH_STATES } from '../shared/contract/graph-state.ts'
import {
  CancelGraphResponse,
  GraphCounts,
  GraphDetails,
  GraphSummary,
  GraphTask,
  RootCause,
} from '../shared/contract/graphs.ts'
import { RerunRequest, RerunResponse } from '../shared/contract/rerun.ts'
import { ExecutionPlan, PlannedSandbox, ResourceEnforcement } from '../shared/contract/runtime.ts'
import { Backoff, SubmitResponse, SubmitWarning, TaskGraph, TaskInput, When } from '../shared/contract/submission.ts'
import { TASK_STATUSES } from '../shared/contract/task-status.ts'
import { Waiting } from '../shared/contract/waiting.ts'

interface Schema {
  readonly type?: string
  readonly description?: string
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema | readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly patternProperties?: Readonly<Record<string, Schema>>
}

const literals = (values: readonly string[]): Schema => ({ anyOf: values.map((value) => ({ const: value })) })

interface Named {
  readonly schema: TSchema | Schema
  readonly what: string
  /** Sent by callers: a field may be undefined as well as absent. */
  readonly isInput?: boolean
  /** Fields that the schema leaves open because later checks have better texts. */
  readonly required?: readonly string[]
  /** Lines for further names that the service takes. */
  readonly more?: readonly string[]
}

const OWN_NAMES = [
  '/** Names that begin with `x-` or `x_` are yours. */',
  'readonly [extension: `x-${' + 'string}` | `x_${' + 'string}`]: unknown',
  'readonly metadata?: unknown',
]

/** In the order of the file. A schema that occurs in another one is named there. */
const TYPES: Readonly<Record<string, Named>> = {
  TaskStatus: { schema: literals(TASK_STATUSES), what: 'State of a task.' },
  GraphState: { schema: literals(GRAPH_STATES), what: 'State of a graph.' },
  ErrorCode: { schema: literals(ERROR_CODES), what: 'What kind of failure a task had.' },
  Backoff: { schema: Backoff, what: 'Waits between attempts.', isInput: true },
  Cache: { schema: Cache, what: 'Takes over an earlier outcome.', isInput: true },
  When: { schema: When, what: 'The condition of a task.', isInput: true },
  GraphCallback: { schema: GraphCallback, what: 'POSTs that a graph asks for.', isInput: true },
  TaskInput: { schema: TaskInput, what: 'A submitted task.', isInput: true, required: ['id', 'type'], more: OWN_NAMES },
  TaskGraph: {
    ...{ schema: TaskGraph, what: 'A graph to submit.', isInput: true, required: ['tasks'] },
    more: [...OWN_NAMES, 'readonly annotations?: unknown', 'readonly $schema?: string'],
  },
  SubmitWarning: { schema: SubmitWarning, what: 'A task that is certain to fail, and the error that it will have.' },
  SubmitResponse: { schema: SubmitResponse, what: 'The answer to a submission.' },
  PlannedSandbox: { schema: PlannedSandbox, what: 'A sandbox as requested with defaults, or as in effect.' },
  ResourceEnforcement: { schema: ResourceEnforcement, what: 'Which limits are enforced.' },
  ExecutionPlan: { schema: ExecutionPlan, what: 'How the runtime service runs a task.' },
  GraphFault: { schema: GraphFault, what: 'A fault of a graph.' },
  GraphDryRun: { schema: GraphDryRun, what: 'The answer of a dry run.' },
  Waiting: { schema: Waiting, what: 'Why a task does not execute. Absent while it executes, and once it has ended.' },
  ReusedFrom: { schema: ReusedFrom, what: 'Where an outcome comes from that was taken over.' },
  RuntimeError: { schema: RuntimeError, what: 'Why a task did not succeed.' },
  RuntimeRecord: { schema: RuntimeRecord, what: 'The last attempt of a task.' },
  ProgressEntry: { schema: ProgressEntry, what: 'What a task reported.' },
  AttemptRecord: { schema: AttemptRecord, what: 'The end of an attempt.' },
  TaskRecord: { schema: TaskRecord, what: 'A task.' },
  ApprovalAnswer: { schema: ApprovalAnswer, what: 'An answer to an approval.', isInput: true },
  ApprovalResult: { schema: ApprovalResult, what: 'The result of an approval that was answered.' },
  CancelledTask: { schema: CancelledTask, what: 'What a cancel did to a task.' },
  CancelResponse: { schema: CancelResponse, what: 'The answer to the cancel of a task.' },
  GraphCounts: { schema: GraphCounts, what: 'Tasks per state; zeros are left out.' },
  GraphSummary: { schema: GraphSummary, what: 'A graph in a list.' },
  GraphTask: { schema: GraphTask, what: 'A task in the answer about its graph.' },
  RootCause: { schema: RootCause, what: 'Why a graph failed.' },
  GraphDetails: { schema: GraphDetails, what: 'A graph with its tasks.' },
  CancelGraphResponse: { schema: CancelGraphResponse, what: 'The answer to the cancel of a graph.' },
  RerunRequest: { schema: RerunRequest, what: 'What runs again.', isInput: true },
  RerunResponse: { schema: RerunResponse, what: 'The answer to a rerun.' },
  HealthResponse: { schema: HealthResponse, what: 'Whether the service lives, and accepts graphs.' },
  EventHeader: { schema: EventHeader, what: 'The fields of every event.' },
  TaskEventState: { schema: TaskEventState, what: 'The newest state of a task, in events.' },
}

/** What decides whether two schemas are the same type. A choice is its values; where it is used says what it is about. */
const keyOf = ({ description: _, ...schema }: Schema): string => {
  const values = schema.anyOf?.map(({ const: value }) => value)
  return JSON.stringify(values === undefined || values.includes(undefined) ? schema : values)
}

const NAMES = new Map(Object.entries(TYPES).map(([name, { schema }]) => [keyOf(schema as Schema), name]))

/** The text of client/contract.ts. */
export function contractTypes(): string {
  const types = Object.entries(TYPES).map(([name, named]) => declaration(name, named))
  const events = Object.entries(EVENT_KINDS).map(([kind, { when, payload }]) => {
    const fields = fieldsOf(payload as Schema, { isInput: false }).map(kind === 'reset' ? withState : (field) => field)
    const more = fields.length === 0 ? '' : ` & ${objectType(fields, 1)}`
    return `  /** ${when} */\n  readonly ${kind}: EventHeader${more}\n`
  })
  return [
    '/** The types of what goes over the wire. Generated from the schemas of the service by `bun run docs`: do not edit. */\n',
    ...types,
    `/** The data of each kind of event. */\nexport interface EventData {\n${events.join('')}}\n`,
    'export type EventKind = keyof EventData\n',
    '/** An event, with its kind. */\nexport type ServiceEvent = { [K in EventKind]: { readonly event: K } & EventData[K] }[EventKind]\n',
  ].join('\n')
}

function declaration(name: string, { schema, what, isInput = false, required = [], more = [] }: Named): string {
  const { properties } = schema as Schema
  const comment = `/** ${what} */\n`
  if (properties === undefined)
    return `${comment}export type ${name} = ${plainType(schema as Schema, { isInput }, 0)}\n`
  const fields = [...fieldsOf(schema as Schema, { isInput, required }), ...more]
  return `${comment}export interface ${name} ${objectType(fields, 0)}\n`
}

/** The state in a `reset`, which its schema leaves open. */
const withState = (field: string): string =>
  field
    .replace(/^readonly (task\??): unknown/, 'readonly $1: TaskEventState')
    .replace(/^readonly (tasks\??): readonly unknown/, 'readonly $1: readonly TaskEventState')
    .replace(/^readonly (graph\??): unknown/, 'readonly $1: GraphSummary')
    .replace(/^readonly (graphs\??): readonly unknown/, 'readonly $1: readonly GraphSummary')

interface Use {
  readonly isInput: boolean
  readonly required?: readonly string[]
}

/** The lines of the fields, without indentation but that of what is inside them. */
function fieldsOf({ properties = {}, required = [] }: Schema, use: Use): string[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const isRequired = required.includes(name) || use.required?.includes(name) === true
    const given = use.required?.includes(name) ? withoutNull(schema) : schema
    const type = typeOf(given, { isInput: use.isInput }, 0)
    const absent = use.isInput && !isRequired && type !== 'unknown' ? ' | undefined' : ''
    const comment = schema.description === undefined ? [] : [`/** ${schema.description.replaceAll('*/', '* /')} */`]
    return [...comment, `readonly ${name}${isRequired ? '' : '?'}: ${type}${absent}`]
  })
}

const withoutNull = (schema: Schema): Schema => {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null')
  return others?.length === 1 ? others[0]! : schema
}

const objectType = (fields: readonly string[], depth: number): string =>
  `{\n${fields.map((field) => indented(field, depth + 1)).join('\n')}\n${'  '.repeat(depth)}}`

const indented = (text: string, depth: number): string => text.replaceAll(/^(?=.)/gm, '  '.repeat(depth))

/** The type of a schema: its name if it has one. */
function typeOf(schema: Schema, use: Use, depth: number): string {
  return NAMES.get(keyOf(schema)) ?? plainType(schema, use, depth)
}

function plainType(schema: Schema, use: Use, depth: number): string {
  const { type, anyOf, items, properties, patternProperties } = schema
  if (schema.const !== undefined) return literal(schema.const)
  if (anyOf !== undefined) return [...new Set(anyOf.map((each) => typeOf(each, use, depth)))].join(' | ')
  if (isTuple(items)) return `readonly [${items.map((each) => typeOf(each, use, depth)).join(', ')}]`
  if (type === 'array') return `readonly ${bracketed(typeOf(items as Schema, use, depth))}[]`
  if (properties !== undefined) return objectType(fieldsOf(schema, use), depth)
  const [values] = Object.values(patternProperties ?? {})
  if (values !== undefined) return `Readonly<Record<string, ${typeOf(values, use, depth)}>>`
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'string' || type === 'boolean' || type === 'null') return type
  if (type === undefined) return 'unknown'
  throw new Error(`no type for ${JSON.stringify(schema)}`)
}

const isTuple = (items: Schema['items']): items is readonly Schema[] => Array.isArray(items)

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value))

const bracketed = (type: string): string => (/^\w+$/.test(type) ? type : `(${type})`)
