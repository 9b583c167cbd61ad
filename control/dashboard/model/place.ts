/** The open place of the page, and its address. The address holds the whole place, so links can be shared. */

import { TASK_STATUSES, type TaskStatus } from '../../../shared/contract/task-status.ts'

export const GRAPH_VIEWS = ['graph', 'map', 'waterfall', 'table'] as const
export type GraphView = (typeof GRAPH_VIEWS)[number]

export const TASK_TABS = ['overview', 'log', 'input', 'output', 'attempts', 'network', 'files'] as const
export type TaskTab = (typeof TASK_TABS)[number]

export type Place =
  | { readonly at: 'graphs' }
  | { readonly at: 'submit' }
  | { readonly at: 'service' }
  /** All schedules, or the one with this name. `isEditing`: the form for it, without a name for a new one. */
  | { readonly at: 'schedules'; readonly name?: string; readonly isEditing?: boolean }
  /** Runs side by side: those of a name, of a tenant if it is one's, or the graphs with these ids. */
  | {
      readonly at: 'runs'
      readonly name?: string | undefined
      readonly tenant?: string | undefined
      readonly ids?: readonly string[] | undefined
    }
  | {
      readonly at: 'graph'
      readonly graphId: string
      readonly view: GraphView
      readonly taskId?: string | undefined
      readonly tab: TaskTab
      /** Only tasks in this state are in the table. */
      readonly state?: TaskStatus | undefined
      /** Whether groups are open in the drawing, by their ids: those that a user has opened or folded. */
      readonly groups?: Groups | undefined
    }

export type Groups = Readonly<Record<string, boolean>>

export type SchedulesPlace = Extract<Place, { at: 'schedules' }>
export type RunsPlace = Extract<Place, { at: 'runs' }>
export type GraphPlace = Extract<Place, { at: 'graph' }>

/** The place of an address such as `#/graphs/g1?view=waterfall&task=build&tab=log`. Unknown addresses are the list. */
export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [first, second] = path.split('/')
  const values = new URLSearchParams(query)
  if (first === 'submit' || first === 'service') return { at: first }
  if (first === 'schedules') {
    return {
      at: 'schedules',
      ...(second !== undefined && second !== '' && { name: decoded(second) }),
      ...(values.has('edit') && { isEditing: true }),
    }
  }
  if (first === 'runs') return runsPlace(values)
  if (first !== 'graphs' || second === undefined || second === '') return { at: 'graphs' }
  const taskId = values.get('task') ?? undefined
  const state = TASK_STATUSES.find((status) => status === values.get('state'))
  const groups = [...values].flatMap(([key, id]) =>
    key === 'open' || key === 'fold' ? [[id, key === 'open'] as const] : [],
  )
  return {
    at: 'graph',
    graphId: decoded(second),
    view: oneOf(GRAPH_VIEWS, values.get('view')),
    ...(taskId !== undefined && { taskId }),
    tab: oneOf(TASK_TABS, values.get('tab')),
    ...(state !== undefined && { state }),
    ...(groups.length > 0 && { groups: Object.fromEntries(groups) }),
  }
}

/** The address of a place. What is the default is left out. */
export function hashOf(place: Place): string {
  if (place.at === 'runs') {
    const { name = '', tenant, ids } = place
    const named = { name, ...(tenant !== undefined && { tenant }) }
    return `#/runs?${new URLSearchParams(ids === undefined ? named : { ids: ids.join() })}`
  }
  if (place.at === 'schedules') {
    const { name, isEditing = false } = place
    return `#/schedules${name === undefined ? '' : `/${encodeURIComponent(name)}`}${isEditing ? '?edit' : ''}`
  }
  if (place.at !== 'graph') return `#/${place.at}`
  const { graphId, view, taskId, tab, state, groups = {} } = place
  const query = new URLSearchParams()
  if (view !== GRAPH_VIEWS[0]) query.set('view', view)
  if (taskId !== undefined) query.set('task', taskId)
  if (taskId !== undefined && tab !== TASK_TABS[0]) query.set('tab', tab)
  if (state !== undefined) query.set('state', state)
  for (const [id, isOpen] of Object.entries(groups)) query.append(isOpen ? 'open' : 'fold', id)
  const text = query.toString()
  return `#/graphs/${encodeURIComponent(graphId)}${text === '' ? '' : `?${text}`}`
}

function runsPlace(values: URLSearchParams): Place {
  const ids = values.get('ids')?.split(',').filter(Boolean)
  if (ids !== undefined && ids.length > 0) return { at: 'runs', ids }
  const name = values.get('name')
  const tenant = values.get('tenant') ?? undefined
  return name === null || name === '' ? { at: 'graphs' } : { at: 'runs', name, ...(tenant !== undefined && { tenant }) }
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
