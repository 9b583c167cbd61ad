/** The whole page: the bar on top, the list of graphs, and the open place. */
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { CapacityResponse } from '../../../shared/contract/capacity.ts'
import type { SessionResponse } from '../../../shared/contract/session.ts'
import { joined, type ListFilter, NO_FILTER } from '../model/list-filter.ts'
import { GRAPH_VIEWS, placeOf, TASK_TABS } from '../model/place.ts'
import { isFenced, lackOf, seesService } from '../model/session.ts'
import type { GraphSummary } from '../model/wire.ts'
import { request, whenUnauthorized } from './api.ts'
import { CapacityLine } from './capacity.tsx'
import { KeysDialog, SearchDialog } from './dialogs.tsx'
import { SESSION_PATH } from './early-work.ts'
import { Empty } from './empty.tsx'
import { Frame, Welcome } from './frame.tsx'
import { GraphListView, shownGraphs } from './graph-list.tsx'
import { GraphPage } from './graph-page.tsx'
import { Overview } from './overview.tsx'
import { Note } from './parts.tsx'
import { PauseNotes } from './pauses.tsx'
import { RunsPage } from './runs-page.tsx'
import { SchedulesPage } from './schedules-page.tsx'
import { ServicePage } from './service-page.tsx'
import { CurrentSession } from './session.tsx'
import { SignIn } from './sign-in.tsx'
import { SubmitForm } from './submit-form.tsx'
import { useAsking } from './use-asking.ts'
import { useGraph } from './use-graph.ts'
import { useGraphList } from './use-graph-list.ts'
import { useJson } from './use-json.ts'
import { useNow } from './use-now.ts'
import { usePlace } from './use-place.ts'

/** Milliseconds between two requests for the capacity of the service, while a graph runs and while none does. */
const CAPACITY_EVERY_MS = 2_000
const IDLE_CAPACITY_EVERY_MS = 10_000

/** Letters that open a part of the selected task, in the order of the tabs. */
const TAB_KEYS = ['o', 'l', 'i', 'r', 'a'] as const

/** Letters that open a view of the graph, in their order. */
const VIEW_KEYS = ['g', 'm', 'w', 't'] as const

export function App({ linkFault }: { linkFault: string | undefined }) {
  const [place, go] = usePlace()
  const [sessions, setSessions] = useState(0)
  const [isSignedOut, setIsSignedOut] = useState(false)
  useLayoutEffect(() => whenUnauthorized(() => setIsSignedOut(true)), []) // before the first answer can come
  const { value: session, fault: sessionFault } = useJson<SessionResponse>(SESSION_PATH, sessions)
  // A fault of the service hides nothing. Before somebody has signed in, it is not known what the page may show.
  const hasFailed = sessionFault !== undefined && sessionFault.status !== 401
  const isOfService = session === undefined ? hasFailed : seesService(session)
  const graphId = place.at === 'graph' ? place.graphId : undefined
  const graphState = useGraph(graphId, sessions) // asked for first
  const listState = useGraphList(graphId === undefined, sessions)
  const [query, setQuery] = useState('')
  const [dialog, setDialog] = useState<'search' | 'keys'>()
  const [asked, setAsked] = useState<'graph' | 'task'>()
  const [filter, setFilter] = useState<ListFilter>(NO_FILTER)
  const [chosen, setChosen] = useState<ReadonlySet<string>>()
  const listed = listState.list?.graphs
  const { asking, onAnswered } = useAsking(listState, place.at === 'graphs')
  const now = useNow(true)
  const shownAt = filter.withinMs === 0 ? 0 : now
  const watch = graphState.watch
  const graphs = useMemo(() => {
    const known = watch === undefined ? undefined : watch.summary
    const all = joined(listed ?? [], filter.shown === 'asking' ? asking : [])
    const current = all.map((graph) => (graph.graph_id === known?.graph_id ? known : graph))
    return shownGraphs(current, { query, filter, now: shownAt })
  }, [listed, asking, query, filter, shownAt, watch?.summary])
  const isBusy = (watch === undefined ? (listed ?? []) : [watch.summary]).some((graph) => graph.state === 'running')
  const isSeen = isBusy || place.at === 'service'
  const capacityTurn = Math.floor(now / (isSeen ? CAPACITY_EVERY_MS : IDLE_CAPACITY_EVERY_MS))
  const isRead = listed !== undefined || watch !== undefined
  const [pauseTurn, setPauseTurn] = useState(0)
  const onPauses = useCallback(() => setPauseTurn((turn) => turn + 1), [])
  const { value: capacity } = useJson<CapacityResponse>(
    isRead && isOfService ? '/runtime' : undefined,
    `${capacityTurn} ${pauseTurn}`,
  )

  useLayoutEffect(() => {
    document.documentElement.className = `at-${place.at}`
  }, [place.at])

  // The list is not followed while one graph is open, so it is read again when that graph ends.
  const openState = watch === undefined ? undefined : `${graphId} ${watch.summary.state}`
  const lastState = useRef<string | undefined>(undefined)
  const { refresh } = listState
  useEffect(() => {
    const hasChanged = lastState.current !== undefined && openState !== undefined
    if (hasChanged && openState !== lastState.current) refresh()
    lastState.current = openState ?? lastState.current
  }, [openState, refresh])

  useEffect(() => {
    document.title = watch === undefined ? 'taskmill' : `${watch.summary.name ?? watch.summary.graph_id} · taskmill`
  }, [watch?.summary.name, watch?.summary.graph_id])

  const step = useCallback(
    (by: number) => {
      const at = graphs.findIndex(({ graph_id }) => graph_id === graphId)
      const next = graphs[at < 0 ? 0 : Math.min(graphs.length - 1, Math.max(0, at + by))]
      if (next !== undefined) go({ at: 'graph', graphId: next.graph_id, view: 'graph', tab: 'overview' })
    },
    [graphs, graphId, go],
  )
  useKeys((key) => {
    const here = placeOf(location.hash) // keys may arrive faster than the page is drawn
    if (key === '/' || key === 'Ctrl+k') setDialog('search')
    else if (key === '?') setDialog('keys')
    else if (key === 'j') step(1)
    else if (key === 'k') step(-1)
    else if (key === 'n') go({ at: 'submit' })
    else if (here.at !== 'graph') return false
    else if (key === 'c') setAsked(here.taskId === undefined ? 'graph' : 'task')
    else if (key === 'Escape' && here.taskId !== undefined) go({ ...here, taskId: undefined })
    else if (VIEW_KEYS.includes(key as 'g')) go({ ...here, view: GRAPH_VIEWS[VIEW_KEYS.indexOf(key as 'g')]! })
    else if (here.taskId !== undefined && TAB_KEYS.includes(key as 'o')) {
      go({ ...here, tab: TASK_TABS[TAB_KEYS.indexOf(key as 'o')]! })
    } else return false
    return true
  })

  if (isSignedOut) {
    return (
      <SignIn
        linkFault={linkFault}
        onSignedIn={() => {
          setIsSignedOut(false)
          setSessions((count) => count + 1)
        }}
      />
    )
  }
  const live = graphId === undefined ? listState.live : graphState.live
  const isEmpty = listed?.length === 0 && graphId === undefined
  return (
    <CurrentSession.Provider value={session}>
      <Frame
        at={place.at}
        live={live}
        session={session}
        maySubmit={lackOf(session, 'submit') === undefined}
        onSignOut={() => void signOut()}
        capacity={capacity !== undefined && <CapacityLine capacity={capacity} />}
        hasTitle={place.at === 'graphs' && !isEmpty}
        onSearch={() => setDialog('search')}
        list={
          !isEmpty && (
            <GraphListView
              state={listState}
              graphs={graphs}
              query={query}
              onQuery={setQuery}
              {...{ filter, chosen }}
              onFilter={setFilter}
              onChosen={setChosen}
              selectedId={graphId}
              now={now}
            />
          )
        }
        dialogs={
          <>
            {dialog === 'search' && (
              <SearchDialog graphs={listed ?? []} watch={watch} onClose={() => setDialog(undefined)} />
            )}
            {dialog === 'keys' && <KeysDialog onClose={() => setDialog(undefined)} />}
          </>
        }
      >
        <PauseNotes pauses={capacity?.pauses ?? []} now={now} onChanged={onPauses} />
        {place.at === 'graphs' &&
          (isEmpty ? (
            <Empty />
          ) : (
            <Beside listed={listed}>{(graphs) => <Overview {...{ graphs, asking, onAnswered, now }} />}</Beside>
          ))}
        {place.at === 'runs' && <RunsPage place={place} now={now} />}
        {place.at === 'submit' && (
          <SubmitForm
            key={String(isFenced(session))}
            isFenced={isFenced(session)}
            onSubmitted={(id) => go({ at: 'graph', graphId: id, view: 'graph', tab: 'overview' })}
          />
        )}
        {place.at === 'schedules' && isOfService && <SchedulesPage place={place} now={now} go={go} />}
        {place.at === 'schedules' && session?.tenant !== undefined && (
          <Note kind="quiet">
            Schedules belong to the whole service. This page is of the tenant {session.tenant}, with its graphs alone.
          </Note>
        )}
        {place.at === 'service' && <ServicePage now={now} capacity={capacity} onPauses={onPauses} />}
        {place.at === 'graph' && watch !== undefined && (
          <GraphPage watch={watch} place={place} now={now} go={go} asked={asked} onAsk={setAsked} />
        )}
        {place.at === 'graph' && watch === undefined && <Missing fault={graphState.fault} graphId={place.graphId} />}
      </Frame>
    </CurrentSession.Provider>
  )
}

/** The page is loaded again, without what it has read. */
async function signOut(): Promise<void> {
  await request(SESSION_PATH, { method: 'DELETE' }).catch(() => {}) // then the page shows that it is still signed in
  location.reload()
}

/** The style sheet hides what is beside the list on a phone, except from readers. */
const isPhone = () => matchMedia('(max-width: 760px)').matches

const Beside = ({
  listed,
  children,
}: {
  listed: readonly GraphSummary[] | undefined
  children: (graphs: readonly GraphSummary[]) => ComponentChildren
}) => (listed === undefined || isPhone() ? <Welcome /> : children(listed))

const Missing = ({ fault, graphId }: { fault: { status: number; message: string } | undefined; graphId: string }) => (
  <Welcome>
    {fault === undefined && <Note kind="quiet">Reading the graph …</Note>}
    {fault?.status === 404 && (
      <Note kind="fault">
        There is no graph {graphId}. It may have been removed: the service keeps graphs for a while after their end.
      </Note>
    )}
    {fault !== undefined && fault.status !== 404 && <Note kind="fault">{fault.message}. Trying again.</Note>}
  </Welcome>
)

/** Calls `onKey` for keys that are not typed into a field. `onKey` returns whether it has handled the key. */
function useKeys(onKey: (key: string) => boolean): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      const isField = target.closest('input, textarea, select') !== null
      const isCommand = (event.ctrlKey || event.metaKey) && event.key === 'k'
      if (document.querySelector('dialog[open]') !== null || event.altKey) return
      if (!isCommand && (isField || event.ctrlKey || event.metaKey)) return
      if (onKey(isCommand ? 'Ctrl+k' : event.key)) event.preventDefault()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  })
}
