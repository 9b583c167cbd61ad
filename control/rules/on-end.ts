/**
 * The field `on_end` of a graph: what it does once all of its tasks have ended. Pure.
 *
 * Each entry becomes a task of the graph, with the id `on_end/<index>`, so it is scheduled, kept and shown like any other.
 * Nothing marks such a task but its id and the options of its graph.
 */
import { ON_END_IDS, type OnEndState } from '../../shared/contract/on-end.ts'
import type { OnEndEntry, TaskInput } from '../../shared/contract/submission.ts'
import { inRanges, type Steps } from '../../shared/process/steps.ts'
import { isGiven, type JsonObject } from '../../shared/text/json.ts'
import { valueFault } from '../json/depth.ts'
import { pointerFault } from '../json/json-pointer.ts'
import { formIn, type InForm } from './form.ts'
import type { Report } from './report.ts'

/** Options of a graph. */
interface EndOptions {
  readonly on_end?: OnEndEntry[]
  readonly scope?: 'graph'
}

/** The short forms of an entry, and the types that they stand for. */
const SHORT_FORMS = { http: 'http', command: 'shell' } as const

const KINDS = [...Object.keys(SHORT_FORMS), 'type'] as (keyof typeof SHORT_FORMS | 'type')[]

/** The fault of entries that fit the schema. */
export function onEndFault(entries: readonly OnEndEntry[]): string | undefined {
  for (const [i, entry] of entries.entries()) {
    const at = `on_end[${i}]`
    const kinds = KINDS.filter((kind) => isGiven(entry[kind]))
    if (kinds.length !== 1) return `${at}: expected exactly one of ${KINDS.join(', ')}`
    const misplaced = (['params', 'tool_name'] as const).find((name) => isGiven(entry[name]))
    if (misplaced !== undefined && kinds[0] !== 'type') return `${at}.${misplaced}: expected only beside type`
    const fault = valueFault(entry)
    if (fault !== undefined) return `${at}: ${fault}`
  }
  return undefined
}

/** The tasks of the entries. Their ends change nothing about the state of the graph. */
export const onEndTasks = ({ on_end = [] }: EndOptions): TaskInput[] =>
  on_end.map(({ when: _, http, command, ...entry }, i) => ({
    ...entry,
    ...(http != null && { type: SHORT_FORMS.http, params: http }),
    ...(command != null && { type: SHORT_FORMS.command, params: command }),
    ...{ id: `${ON_END_IDS}${i}`, continue_on_error: true },
  }))

/** In which state of its graph the task `id` runs, once all others have ended. Undefined for any other task. */
export function atEndOf(id: string, { on_end }: EndOptions): OnEndState | undefined {
  if (on_end === undefined || !id.startsWith(ON_END_IDS)) return undefined
  const i = Number(id.slice(ON_END_IDS.length))
  return on_end[i] !== undefined && id === `${ON_END_IDS}${i}` ? (on_end[i].when ?? 'always') : undefined
}

/** Reports what no graph with `on_end` may have: ids of the service, and tasks that wait for the end of all others. */
export function* reviewOnEnd(options: EndOptions, tasks: readonly TaskInput[], report: Report): Steps<void> {
  if (options.on_end === undefined) return
  if (options.scope !== 'graph')
    report('on_end: expected "scope": "graph" beside it, because it adds tasks with ids of the graph')
  yield* inRanges(tasks.length, (from, to) => {
    for (const { id, depends_on } of tasks.slice(from, to)) {
      const last = depends_on?.find((dependency) => atEndOf(dependency, options) !== undefined)
      if (last !== undefined)
        report(`task ${id} depends on ${last}, which waits for the end of all other tasks`, id ?? undefined)
    }
  })
}

/** `{"$graph": pointer}`: a value of the graph, which a task of `on_end` is told. */
export type GraphPlaceholder = {
  readonly kind: 'graph'
  readonly path: string
  readonly default?: { readonly value: unknown }
} & InForm

export const GRAPH_PLACEHOLDER_FIELDS = ['$graph', 'default', 'as'] as const

/** Parses an object with `$graph`. Returns the fault if it is invalid. */
export function graphPlaceholderIn({ $graph: path, as, ...object }: Readonly<JsonObject>): GraphPlaceholder | string {
  if (typeof path !== 'string') return '$graph: expected a JSON Pointer into the graph ("/state")'
  const fault = pointerFault(path)
  if (fault !== undefined) return `$graph: ${fault}`
  const form = formIn(as)
  if (typeof form === 'string') return form
  return { kind: 'graph', path, ...(object.default !== undefined && { default: { value: object.default } }), ...form }
}
