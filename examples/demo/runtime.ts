/**
 * The runtime service of the demo. Control submits the runtime tasks to it.
 *
 * Its tasks outlive it by design, so the demo kills them before it ends. If the service itself was killed, the demo
 * starts another one on the same data directory, which finds the tasks.
 */
import type { TaskListResponse } from '../../shared/contract/runtime.ts'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { ServiceProcess } from './service-process.ts'
import type { Workspace } from './workspace.ts'

const TASKS = '/api/v1/tasks'

/** Milliseconds of one request that waits for the end of a task. */
const WAIT_MS = 20_000

export class Runtime implements AsyncDisposable {
  readonly service: ServiceProcess
  readonly #start: () => Promise<ServiceProcess>
  #isOver = false

  private constructor(service: ServiceProcess, start: () => Promise<ServiceProcess>) {
    this.service = service
    this.#start = start
  }

  /** On a free port. */
  static async start(executable: string, { work, runtimeData }: Workspace, signal: AbortSignal): Promise<Runtime> {
    const flags = ['--listen-addr', '127.0.0.1:0', '--data-dir', runtimeData, '--termination-grace-ms', '500']
    const options = { name: 'runtime service', command: [executable, 'serve', ...flags], cwd: work }
    return new Runtime(await ServiceProcess.start(options, signal), () => ServiceProcess.start(options))
  }

  /** Whether `memory_bytes` holds on this host at all, in whatever way. */
  async limitsMemory(signal: AbortSignal): Promise<boolean> {
    const { resources } = (await this.service.ask('/api/v1/runtime/capabilities', { signal })) as RuntimeCapabilities
    return resources.memory_limit
  }

  /** Ends it in order, when its tasks have ended. */
  stop(): Promise<void> {
    this.#isOver = true
    return this.service.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOver) return
    await using service = this.service.hasEnded ? await this.#start() : this.service
    await endTasks(service)
  }
}

/** One that was on its way from a control service that has ended may come while others are being ended. */
async function endTasks(service: ServiceProcess): Promise<void> {
  for (let open = await openTasks(service); open.length > 0; open = await openTasks(service)) {
    for (const id of open) await service.ask(`${TASKS}/${id}/kill`, { method: 'POST' })
    for (const id of open) await service.ask(`${TASKS}/${id}?wait_ms=${WAIT_MS}`)
  }
}

async function openTasks(service: ServiceProcess): Promise<string[]> {
  const open: string[] = []
  for (const status of ['accepted', 'running']) {
    const { tasks } = (await service.ask(`${TASKS}?status=${status}&limit=1000`)) as TaskListResponse
    open.push(...tasks.map(({ task_id }) => task_id))
  }
  return open
}
