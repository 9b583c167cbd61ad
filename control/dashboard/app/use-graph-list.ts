/** The list of graphs, as far as the page has read it. */
import { useCallback, useEffect } from 'preact/hooks'
import { type GraphList, listAfterEvents, listOf, withOlder } from '../model/graph-list.ts'
import type { GraphSummary } from '../model/wire.ts'
import { positionOf, request } from './api.ts'
import { LIST_PATH } from './early-work.ts'
import { type Followed, useFollowed } from './use-followed.ts'

export interface ListState extends Omit<Followed<GraphList>, 'state' | 'change'> {
  readonly list: GraphList | undefined
  readonly loadOlder: () => void
}

/**
 * The list of graphs. It is followed only while `isFollowing`. A page that shows one graph follows that graph, and
 * reads the list again when the user returns to it.
 */
export function useGraphList(isFollowing: boolean, sessionKey: number): ListState {
  const events = isFollowing ? '/events' : undefined
  const source = { path: LIST_PATH, events, read: readList, after: listAfterEvents }
  const { state: list, change, ...followed } = useFollowed<GraphList>(source, sessionKey)
  const { refresh } = followed

  useEffect(() => {
    if (isFollowing) return
    const onVisible = () => document.visibilityState === 'visible' && refresh()
    document.addEventListener('visibilitychange', onVisible)
    return () => document.removeEventListener('visibilitychange', onVisible)
  }, [isFollowing, refresh])

  const loadOlder = useCallback(async () => {
    const cursor = list?.nextCursor
    if (cursor === undefined) return
    change((before) => ({ ...before, nextCursor: undefined })) // one request at a time
    const response = await request(`${LIST_PATH}&cursor=${encodeURIComponent(cursor)}`)
    const graphs = (await response.json()) as GraphSummary[]
    change((before) => withOlder(before, graphs, nextCursorOf(response)))
  }, [list?.nextCursor, change])

  return { list, ...followed, loadOlder }
}

const readList = async (response: Response): Promise<GraphList> =>
  listOf((await response.json()) as GraphSummary[], nextCursorOf(response), positionOf(response))

const nextCursorOf = (response: Response): string | undefined => response.headers.get('x-next-cursor') ?? undefined
