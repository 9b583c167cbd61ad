/** The open place of the page, and its address. The address holds the whole place, so links can be shared. */

import { TASK_STATUSES, type TaskStatus } from '../../../shared/contract/task-status.ts'

export const GRAPH_VIEWS = ['graph', 'map', 'waterfall', 'table'] as const
export type GraphView = (typeof GRAPH_VIEWS)[number]

export const TASK_TABS = ['overview', 'log', 'input', 'output', 'attempts', 'network'] as const
export type TaskTab = (typeof TASK_TABS)[number]

export type Place =
  | { readonly at: 'graphs' }
  | { readonly at: 'submit' }
  | { readonly at: 'service' }
  | {
      readonly at: 'graph'
      readonly graphId: string
      readonly view: GraphView
      readonly taskId?: string | undefined
      readonly tab: TaskTab
      /** Only tasks in this state are in the table. */
      readonly state?: TaskStatus | undefined
    }

export type GraphPlace = Extract<Place, { at: 'graph' }>

/** The place of an address such as `#/graphs/g1?view=waterfall&task=build&tab=log`. Unknown addresses are the list. */
export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [first, second] = path.split('/')
  if (first === 'submit' || first === 'service') return { at: first }
  if (first !== 'graphs' || second === undefined || second === '') return { at: 'graphs' }
  const values = new URLSearchParams(query)
  const taskId = values.get('task') ?? undefined
  const state = TASK_STATUSES.find((status) => status === values.get('state'))
  return {
    at: 'graph',
    graphId: decoded(second),
    view: oneOf(GRAPH_VIEWS, values.get('view')),
    ...(taskId !== undefined && { taskId }),
    tab: oneOf(TASK_TABS, values.get('tab')),
    ...(state !== undefined && { state }),
  }
}

/** The address of a place. What is the default is left out. */
export function hashOf(place: Place): string {
  if (place.at !== 'graph') return `#/${place.at}`
  const { graphId, view, taskId, tab, state } = place
  const query = new URLSearchParams()
  if (view !== GRAPH_VIEWS[0]) query.set('view', view)
  if (taskId !== undefined) query.set('task', taskId)
  if (taskId !== undefined && tab !== TASK_TABS[0]) query.set('tab', tab)
  if (state !== undefined) query.set('state', state)
  const text = query.toString()
  return `#/graphs/${encodeURIComponent(graphId)}${text === '' ? '' : `?${text}`}`
}

/** `value` if it is one of `values`, else the first of them. */
const oneOf = <T extends string>(values: readonly [T, ...T[]], value: string | null): T =>
  values.find((known) => known === value) ?? values[0]

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
