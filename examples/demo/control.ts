/** The control service of the demo, which runs the graphs. */
import { existsSync } from 'node:fs'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { endGroup } from '../../shared/process/process-group.ts'
import { markedProcesses, processStat } from '../../shared/process/processes.ts'
import { attemptMarkOf, serviceIdOf } from '../../shared/process/service-id.ts'
import { ServiceProcess } from './service-process.ts'
import type { Workspace } from './workspace.ts'

/** Milliseconds between TERM and KILL for the processes of control's tasks. */
const KILL_GRACE_MS = 500

/** On a free port, with the work directory as the place that its tasks may write to. */
export function startControl(
  executable: string,
  { work, controlData }: Workspace,
  runtimeUrl: string,
  signal: AbortSignal,
): Promise<ServiceProcess> {
  const flags = ['--addr', '127.0.0.1:0', '--data-dir', controlData, '--file-root', work, '--runtime-url', runtimeUrl]
  const patience = ['--shutdown-timeout', '500ms', '--kill-grace', `${KILL_GRACE_MS}ms`]
  return ServiceProcess.start(
    { name: 'control service', command: [executable, ...flags, ...patience], cwd: work },
    signal,
  )
}

/**
 * Ends the processes of tasks that a killed control service left behind. A restart of that service would end them too,
 * but would then run their tasks again.
 */
export async function endLocalTasks({ controlData }: Workspace): Promise<void> {
  if (!existsSync(controlData)) return // control did not start
  const pids = markedProcesses(attemptMarkOf(serviceIdOf(controlData)))
  const groups = new Set(pids.map((pid) => processStat(pid)?.group ?? 0).filter((group) => group > 1))
  await Promise.all([...groups].map((group) => endGroup(group, KILL_GRACE_MS)))
}

/** The records of one graph, in its order. */
export async function tasksOf(control: ServiceProcess, graphId: string, signal: AbortSignal): Promise<TaskRecord[]> {
  const records = (await control.ask('/tasks', { signal })) as TaskRecord[]
  return records.filter(({ graph_id }) => graph_id === graphId)
}
