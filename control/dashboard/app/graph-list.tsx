/** The list of graphs, newest first, each with a bar of the states of its tasks. */
import { useLayoutEffect } from 'preact/hooks'
import { durationText, elapsedText, timeText } from '../model/amounts.ts'
import { doneText, graphLook } from '../model/counts.ts'
import { isShown, type ListFilter, NO_FILTER } from '../model/list-filter.ts'
import { LOOK_WORDS } from '../model/looks.ts'
import { search } from '../model/search.ts'
import type { GraphSummary } from '../model/wire.ts'
import { ChosenGraphs } from './chosen-graphs.tsx'
import { ListFrame, UnreadList } from './frame.tsx'
import { markDrawn } from './marks.ts'
import { Ago, Id, Note, StateBar } from './parts.tsx'
import { TenantLabel } from './session.tsx'
import { StateIcon } from './state-icon.tsx'
import type { ListState } from './use-graph-list.ts'
import { Windowed } from './windowed.tsx'

const ROW_HEIGHT = 62

export interface GraphListProps {
  readonly state: ListState
  readonly graphs: readonly GraphSummary[]
  readonly query: string
  readonly onQuery: (query: string) => void
  readonly filter: ListFilter
  readonly onFilter: (filter: ListFilter) => void
  /** Undefined: graphs are opened, not chosen. */
  readonly chosen: ReadonlySet<string> | undefined
  readonly onChosen: (chosen: ReadonlySet<string> | undefined) => void
  readonly selectedId: string | undefined
  readonly now: number
}

/** The graphs that the list shows. */
export function shownGraphs(
  graphs: readonly GraphSummary[],
  { query, filter, now }: Pick<GraphListProps, 'query' | 'filter' | 'now'>,
): readonly GraphSummary[] {
  const shown = filter === NO_FILTER ? graphs : graphs.filter((graph) => isShown(graph, filter, now))
  return query.trim() === '' ? shown : search(shown, query, searchText, shown.length)
}

/** The text that a search matches: name, id, state, tenant and labels. */
export function searchText(graph: GraphSummary): string {
  const { name, graph_id, state, tenant, labels } = graph
  const words = [name ?? '', graph_id, state, tenant ?? '', LOOK_WORDS[graphLook(graph)]]
  return [...words, ...Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)].join(' ')
}

export function GraphListView({ state, graphs, query, onQuery, selectedId, now, ...props }: GraphListProps) {
  const { filter, onFilter, chosen, onChosen } = props
  const { list, fault, loadOlder } = state
  const isRead = list !== undefined
  useLayoutEffect(() => {
    if (isRead && selectedId === undefined) markDrawn()
  }, [isRead, selectedId])
  return (
    <ListFrame
      query={query}
      {...{ onQuery, filter, onFilter }}
      isChoosing={chosen !== undefined}
      onChoosing={() => onChosen(chosen === undefined ? new Set() : undefined)}
      onRefresh={state.refresh}
      {...(isRead && { readAt: timeText(state.readAt) })}
    >
      {fault !== undefined && fault.status !== 401 && <Note kind="fault">{fault.message}. Trying again.</Note>}
      {!isRead && fault === undefined && <UnreadList />}
      {list !== undefined && graphs.length === 0 && (query !== '' || filter !== NO_FILTER) && (
        <Note kind="quiet">No graph matches.</Note>
      )}
      {isRead && (
        <Windowed
          items={graphs}
          rowHeight={ROW_HEIGHT}
          keyOf={({ graph_id }) => graph_id}
          label="Graphs, newest first"
          shownIndex={graphs.findIndex(({ graph_id }) => graph_id === selectedId)}
          onEnd={list.nextCursor === undefined ? undefined : loadOlder}
          render={(graph) => {
            const { graph_id } = graph
            const row = <Row graph={graph} isSelected={graph_id === selectedId} now={now} />
            if (chosen === undefined) return row
            return (
              <div class="choosable">
                <input
                  type="checkbox"
                  aria-label={`Choose ${graph.name ?? graph_id}`}
                  checked={chosen.has(graph_id)}
                  onChange={() => onChosen(toggled(chosen, graph_id))}
                />
                {row}
              </div>
            )
          }}
        />
      )}
      {chosen !== undefined && (
        <ChosenGraphs
          graphs={graphs.filter(({ graph_id }) => chosen.has(graph_id))}
          onDone={() => onChosen(undefined)}
        />
      )}
    </ListFrame>
  )
}

function toggled(chosen: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(chosen)
  if (!next.delete(id)) next.add(id)
  return next
}

function Row({ graph, isSelected, now }: { graph: GraphSummary; isSelected: boolean; now: number }) {
  const { graph_id, name, labels = {}, counts, task_count, created_at } = graph
  const look = graphLook(graph)
  const isHeld = look === 'asking' || look === 'backoff'
  return (
    <a
      class="graph-row"
      href={`#/graphs/${encodeURIComponent(graph_id)}`}
      aria-current={isSelected ? 'page' : undefined}
    >
      <span class="graph-row-top">
        <StateIcon look={look} />
        {name === undefined ? (
          <Id text={graph_id} />
        ) : (
          <span class="name" title={name}>
            {name}
          </span>
        )}
        <span class="time">{graph.pause === undefined ? timeOf(graph, now) : 'paused'}</span>
      </span>
      <span class="graph-row-bar">
        <StateBar counts={counts} total={task_count} />
      </span>
      <span class="graph-row-bottom">
        <span>
          {isHeld && `${LOOK_WORDS[look]}, `}
          {doneText(counts, task_count, task_count === 1 ? 'task' : 'tasks')}
        </span>
        <span class="graph-row-labels">
          <TenantLabel tenant={graph.tenant} />
          {Object.entries(labels).map(([key, value]) => (
            <span class="label" key={key} title={`${key}=${value}`}>
              {key}={value}
            </span>
          ))}
        </span>
        <Ago time={created_at} now={now} />
      </span>
    </a>
  )
}

export function timeOf(graph: GraphSummary, now: number): string {
  if (graph.state === 'running') return elapsedText(now - Date.parse(graph.started_at ?? graph.created_at))
  if (graph.duration_ms !== undefined) return durationText(graph.duration_ms)
  return graph.finished_at === undefined
    ? ''
    : durationText(Date.parse(graph.finished_at) - Date.parse(graph.created_at))
}
