/** Records the reports of executing attempts: processes, handles in other services, progress. */
import { identify } from '../../shared/process/processes.ts'
import type { Keeper } from '../log/keeper.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { AttemptHost } from './attempt.ts'

type Reports = Pick<AttemptHost, 'startedProcess' | 'handedOver' | 'progress'>

export const reportsTo = (store: TaskStore, keeper: Pick<Keeper, 'flush'>): Reports => ({
  startedProcess(task, pid) {
    const process = identify(pid)
    if (process === undefined) return // it has already ended, or the platform has no process start times
    store.apply({ kind: 'process-started', task, at: Date.now(), process })
    keeper.flush()
  },
  handedOver(task, handle) {
    store.apply({ kind: 'handed-over', task, at: Date.now(), handle })
  },
  progress(task, attempt, message, data) {
    const isExecuting = (task.status === 'running' && !task.rare.isBackingOff) || task.status === 'cancelling'
    if (task.attempt !== attempt || !isExecuting) return // the report came after the executor had returned
    const report = { ...(message !== undefined && { message }), ...(data !== undefined && { data }) }
    store.apply({ kind: 'progress', task, at: Date.now(), ...report })
  },
})
