/** Waits until only people can let tasks go on, which an end and a new approval may bring about. */
import { runCooperatively } from '../../shared/process/steps.ts'
import { pause } from '../../shared/streams/pause.ts'
import { isApproval } from '../task/approval.ts'
import { approvalsLeft } from '../task/approvals-left.ts'
import type { Task } from '../task/graph.ts'
import type { TaskStore } from '../task/tasks.ts'

/** Milliseconds between two looks at the tasks, of which there may be 100,000. */
const LOOK_PAUSE_MS = 50

/** The approvals of `approvalsLeft` at present; empty if it has none. */
export const approvalsNow = async (tasks: readonly Task[]): Promise<readonly Task[]> =>
  (await runCooperatively(approvalsLeft(tasks))) ?? []

/** Resolves once `approvalsLeft` has some, or `ends` fires: empty then. At once if no graph of `tasks` has an approval. */
export async function awaitedApprovals(
  store: TaskStore,
  tasks: readonly Task[],
  ends: AbortSignal,
): Promise<readonly Task[]> {
  const graphs = [...new Set(tasks.map(({ graph }) => graph))].filter((graph) => graph.tasks.some(isApproval))
  while (graphs.length > 0 && !ends.aborted) {
    const looked = new AbortController()
    const until = AbortSignal.any([ends, looked.signal])
    let isStale = false
    const changed = Promise.race([store.whenAnyEnds(graphs, until), store.whenAnyAsked(graphs, until)])
    void changed.then(() => {
      isStale = true
    })
    const approvals = await approvalsNow(tasks)
    if (approvals.length > 0 && !isStale) {
      looked.abort()
      return approvals
    }
    await changed
    looked.abort()
    await pause(LOOK_PAUSE_MS, ends).catch(() => {})
  }
  return []
}
