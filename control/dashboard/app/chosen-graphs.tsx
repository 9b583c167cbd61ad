/** What is done with several graphs at once: compare, rerun, delete. */
import { useState } from 'preact/hooks'
import { hashOf } from '../model/place.ts'
import { RequestKey } from '../model/request-key.ts'
import type { GraphSummary } from '../model/wire.ts'
import { postOnce, request } from './api.ts'
import { graphPath } from './early-work.ts'
import { Confirm, Note } from './parts.tsx'
import { RightButton, useLack } from './session.tsx'

/** Runs that fit beside one another. */
const MAX_COMPARED = 12

export interface ChosenGraphsProps {
  /** In the order of the list. */
  readonly graphs: readonly GraphSummary[]
  readonly onDone: () => void
}

type Verb = 'rerun' | 'delete'

export function ChosenGraphs({ graphs, onDone }: ChosenGraphsProps) {
  const [isAsking, setIsAsking] = useState(false)
  const [isBusy, setIsBusy] = useState(false)
  const [submitLack, deleteLack] = [useLack('submit'), useLack('operate')]
  const [outcome, setOutcome] = useState<{ done: number; verb: Verb; faults: readonly string[] }>()
  /** Of the reruns, by graph. */
  const [keys] = useState(() => new Map<string, RequestKey>())
  const failed = graphs.filter(({ state }) => state === 'failed' || state === 'cancelled')
  const ended = graphs.filter(({ state }) => state !== 'running')
  const act = async (verb: Verb, some: readonly GraphSummary[]) => {
    setIsAsking(false)
    setIsBusy(true)
    const faults: string[] = []
    for (const { graph_id, name } of some) {
      try {
        if (verb === 'delete') await request(graphPath(graph_id), { method: 'DELETE' })
        else {
          const key = keys.get(graph_id) ?? new RequestKey()
          keys.set(graph_id, key)
          await postOnce(key, `${graphPath(graph_id)}/rerun`, RERUN)
        }
      } catch (error) {
        faults.push(`${name ?? graph_id}: ${(error as Error).message}`)
      }
    }
    setOutcome({ done: some.length - faults.length, verb, faults })
    setIsBusy(false)
  }
  const compared = graphs.map(({ graph_id }) => graph_id).toReversed()
  return (
    <section class="chosen-graphs" aria-label="Chosen graphs">
      <span role="status">
        {outcome === undefined
          ? `${graphs.length} chosen`
          : `${outcome.done} ${outcome.verb === 'delete' ? 'deleted' : 'run again'}`}
      </span>
      {compared.length >= 2 && compared.length <= MAX_COMPARED && (
        <a class="button small" href={hashOf({ at: 'runs', ids: compared })}>
          Compare
        </a>
      )}
      <RightButton
        lack={submitLack}
        class="small"
        disabled={isBusy || failed.length === 0}
        onClick={() => void act('rerun', failed)}
      >
        Rerun what failed
      </RightButton>
      <RightButton
        lack={deleteLack}
        class="small danger"
        disabled={isBusy || ended.length === 0}
        onClick={() => setIsAsking(true)}
      >
        Delete …
      </RightButton>
      <button type="button" class="small" onClick={onDone}>
        Done
      </button>
      {outcome?.faults.map((fault) => (
        <Note kind="fault" key={fault}>
          {fault}
        </Note>
      ))}
      {isAsking && (
        <Confirm
          title={ended.length === 1 ? 'Delete this graph?' : `Delete ${ended.length} graphs?`}
          text="Their tasks, results and logs go as well. Graphs that run stay."
          word="Delete"
          onYes={() => void act('delete', ended)}
          onNo={() => setIsAsking(false)}
        />
      )}
    </section>
  )
}

const RERUN = JSON.stringify({ from: 'failed' })
