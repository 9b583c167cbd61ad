/** The dialogs of the page: search, keys. */
import { useMemo, useState } from 'preact/hooks'
import type { GraphWatch } from '../model/graph-watch.ts'
import { lookOf } from '../model/looks.ts'
import { hashOf } from '../model/place.ts'
import { search } from '../model/search.ts'
import type { GraphSummary } from '../model/wire.ts'
import { searchText } from './graph-list.tsx'
import { Dialog, Id, Note } from './parts.tsx'
import { StateIcon } from './state-icon.tsx'
import { useTypedDistantTask } from './use-distant-task.ts'

/** Maximum results of each kind. */
const MAX_RESULTS = 12

/** Finds tasks of the open graph, and graphs. */
export function SearchDialog({
  graphs,
  watch,
  onClose,
}: {
  graphs: readonly GraphSummary[]
  watch: GraphWatch | undefined
  onClose: () => void
}) {
  const [query, setQuery] = useState('')
  const [chosen, setChosen] = useState(0)
  const distant = useTypedDistantTask(watch, query)
  const results = useMemo(() => {
    const graphId = watch?.summary.graph_id ?? ''
    const known = search(watch?.tasks ?? [], query, ({ id }) => id, MAX_RESULTS)
    const tasks = (distant === undefined ? known : [distant, ...known]).map((task) => ({
      ...{ key: `task ${task.id}`, look: lookOf(task), text: task.id, kind: 'task' },
      hash: hashOf({ at: 'graph', graphId, view: 'graph', taskId: task.id, tab: 'overview' }),
    }))
    const found = search(graphs, query, searchText, MAX_RESULTS).map((graph) => ({
      ...{ key: graph.graph_id, look: graph.state, text: graph.name ?? graph.graph_id, kind: 'graph' },
      hash: hashOf({ at: 'graph', graphId: graph.graph_id, view: 'graph', tab: 'overview' }),
    }))
    return [...tasks, ...found]
  }, [query, graphs, watch, distant])
  const open = (hash: string) => {
    location.hash = hash
    onClose()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && results[chosen] !== undefined) {
      event.preventDefault()
      open(results[chosen].hash)
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0 || results.length === 0) return
    event.preventDefault()
    setChosen((at) => (at + step + results.length) % results.length)
  }
  return (
    <Dialog title="Search" onClose={onClose}>
      <input
        type="search"
        class="search-input"
        placeholder="Find a task or a graph"
        aria-label="Find a task or a graph"
        aria-controls="search-results"
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value)
          setChosen(0)
        }}
        onKeyDown={onKeyDown}
      />
      <ul id="search-results" class="search-results">
        {results.map(({ key, look, text, kind, hash }, index) => (
          <li key={key}>
            <a
              href={hash}
              class={index === chosen ? 'chosen' : ''}
              onClick={(event) => {
                event.preventDefault()
                open(hash)
              }}
            >
              <StateIcon look={look} />
              <Id text={text} />
              <span class="quiet">{kind}</span>
            </a>
          </li>
        ))}
      </ul>
      {results.length === 0 && <Note kind="quiet">Nothing matches.</Note>}
    </Dialog>
  )
}

const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['j, k', 'next graph, previous graph'],
  ['/ or Ctrl+K', 'search'],
  ['g, m, w, t', 'graph, map, waterfall, table'],
  ['arrows', 'from task to task, along the edges'],
  ['Enter', 'open the task, or the box of several'],
  ['f', 'fold or open the group in the drawing'],
  ['o, l, i, r, a', 'overview, log, input, result, attempts of the task'],
  ['c', 'cancel the task or the graph; asks first'],
  ['n', 'submit a new graph'],
  ['Escape', 'close the task'],
  ['?', 'these keys'],
]

export const KeysDialog = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <h2>Keys</h2>
    <dl class="facts">
      {KEYS.map(([keys, meaning]) => (
        <div class="fact" key={keys}>
          <dt>
            <kbd>{keys}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </Dialog>
)
