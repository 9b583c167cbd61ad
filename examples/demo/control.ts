/** The control service of the demo: it takes the graphs. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { ServiceProcess } from './service-process.ts'
import type { Workspace } from './workspace.ts'

/** On a free port, with the work directory as the place that its tasks may write to. */
export function startControl(
  executable: string,
  { work, controlData }: Workspace,
  runtimeUrl: string,
  signal: AbortSignal,
): Promise<ServiceProcess> {
  const flags = ['--addr', '127.0.0.1:0', '--data-dir', controlData, '--file-root', work, '--runtime-url', runtimeUrl]
  const patience = ['--shutdown-timeout', '500ms', '--kill-grace', '500ms']
  return ServiceProcess.start(
    { name: 'control service', command: [executable, ...flags, ...patience], cwd: work },
    signal,
  )
}

/** The records of one graph, in its order. */
export async function tasksOf(control: ServiceProcess, graphId: string, signal: AbortSignal): Promise<TaskRecord[]> {
  const records = (await control.ask('/tasks', { signal })) as TaskRecord[]
  return records.filter(({ graph_id }) => graph_id === graphId)
}
