/** The graphs with a task that waits for an approval. Some of them the list has not read. */
import { useCallback, useMemo, useState } from 'preact/hooks'
import { graphLook } from '../model/counts.ts'
import { joined } from '../model/list-filter.ts'
import type { GraphSummary } from '../model/wire.ts'
import type { ListState } from './use-graph-list.ts'
import { useJson } from './use-json.ts'

/** More than a person answers before the page reads again. */
const MAX_ASKING = 100

export function useAsking({ list, readAt }: ListState, isWanted: boolean) {
  const [answers, setAnswers] = useState(0)
  const onAnswered = useCallback(() => setAnswers((count) => count + 1), [])
  const listed = useMemo(() => list?.graphs.filter((graph) => graphLook(graph) === 'asking') ?? [], [list?.graphs])
  const path = isWanted && list !== undefined ? `/graphs?waiting=approval&limit=${MAX_ASKING}` : undefined
  const { value } = useJson<GraphSummary[]>(path, `${readAt} ${answers} ${listed.length}`)
  const asking = useMemo(() => {
    // What the list has is newer than an answer.
    const known = new Set(list?.graphs.map(({ graph_id }) => graph_id))
    return joined(listed, value?.filter(({ graph_id }) => !known.has(graph_id)) ?? [])
  }, [listed, value, list?.graphs])
  return { asking, onAnswered }
}
