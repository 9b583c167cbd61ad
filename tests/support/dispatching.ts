/** A dispatcher of one test: a real store and real launchers, without HTTP and without a plan to work out. */
import { Dispatcher } from '../../runtime/dispatch/dispatcher.ts'
import { startedProcess } from '../../runtime/dispatch/launch-ending.ts'
import { baseEnvironment } from '../../runtime/dispatch/launch-plan.ts'
import { Launches } from '../../runtime/dispatch/launches.ts'
import { recoverTasks } from '../../runtime/dispatch/recovery.ts'
import { ResultFiles } from '../../runtime/dispatch/result-files.ts'
import { taskDirContent } from '../../runtime/dispatch/task-dir-content.ts'
import { WaitingQueue } from '../../runtime/dispatch/waiting-queue.ts'
import { planTask } from '../../runtime/intake/plan.ts'
import type { LauncherEvent } from '../../runtime/launcher/notify.ts'
import { isLauncherAlive, requestKill } from '../../runtime/launcher/spawn.ts'
import { Ledger } from '../../runtime/ledger/ledger.ts'
import { makeTaskDir, type TaskDir, taskDir } from '../../runtime/store/task-dir.ts'
import type { LiveTask } from '../../runtime/store/task-store.ts'
import type { TaskRow } from '../../runtime/store/tasks.ts'
import type { Sync } from '../../runtime/store/wal-sync.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { bootId } from '../../shared/processes.ts'
import { hostWithout } from './capabilities.ts'
import { HELD } from './held.ts'
import { LauncherService } from './launcher-service.ts'
import { request } from './runtime-requests.ts'
import { acceptedRow, storedTasks } from './stored-tasks.ts'
import { until } from './until.ts'

const GRACE_MS = 500

export interface DispatchingOptions {
  /** Tasks that may run at once. */
  readonly slots?: number
}

/** A disk that can be kept from syncing. */
class SlowDisk {
  #free = Promise.resolve()
  readonly through = (sync: Sync): Sync => ({
    now: () => sync.now(),
    later: async () => {
      await this.#free
      await sync.later()
    },
  })

  /** No sync begins until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#free = promise
    return resolve
  }
}

export function dispatching({ slots = 4 }: DispatchingOptions = {}) {
  const disk = new SlowDisk()
  const stored = storedTasks(disk.through)
  const { store, commit, path: dataDir } = stored
  const launchers = new LauncherService({ onEvent: (event) => hear(event) })
  const { log } = launchers.log
  const ledger = new Ledger({ task_slots: slots })
  const queue = new WaitingQueue<LiveTask>(ledger)
  const launches = new Launches({
    host: launchers.host,
    settings: {
      graceMs: GRACE_MS,
      maxOutputBytes: 1_000_000,
      baseEnvironment: baseEnvironment(process.env, 'test'),
      sandbox: { user: undefined, canFilter: false, masks: [], exposed: [] },
    },
    cgroups: undefined,
    capabilities: hostWithout(),
    serviceId: crypto.randomUUID(),
    ...{ dataDir, store, log },
  })
  const dispatcher = new Dispatcher({
    ...{ store, commit, ledger, queue, launches, log },
    directory: HELD,
    results: new ResultFiles(dataDir, log),
    bootId: bootId(),
    graceMs: GRACE_MS,
    retryMs: 10_000,
  })
  const hear = (event: LauncherEvent) => {
    if (event.event === 'started') dispatcher.onStarted(event.task_id, startedProcess(event))
    else if (event.event === 'failed') launches.onFault(event.task_id, event)
    else if (event.event === 'ended') dispatcher.onOutcome(event.task_id)
  }

  /** A task in the database, with its directory; nothing starts it. */
  async function accept(parts: SubmitTaskRequest, more: Partial<TaskRow> = {}): Promise<LiveTask> {
    const asked = request(parts)
    const plan: ExecutionPlan = planTask(asked, hostWithout(), {
      capability_mode: 'adaptive',
      access: { runtime: 'token', control: 'token' },
      sandbox_pids_max: undefined,
    })
    const text = JSON.stringify(asked)
    makeTaskDir(dirOf(asked.task_id), taskDirContent(asked, text, plan, undefined))
    const row = acceptedRow(asked.task_id, {
      execution_plan: JSON.stringify(plan),
      reservation: '{"task_slots":1}',
      limits: JSON.stringify(asked.limits),
      ...more,
    })
    return await store.accept(row, { request: text, events: [] })
  }

  const dirOf = (taskId: string): TaskDir => taskDir(dataDir, taskId)

  return {
    ...{ dispatcher, launchers, store, disk, accept, dirOf, hear },
    recover: () => recoverTasks({ store, ledger, dispatcher, launches, bootId: bootId(), log }),
    eventTypes: (taskId: string) => store.events(taskId).map(({ event_type }) => event_type),
    [Symbol.asyncDispose]: async () => {
      dispatcher.stop()
      const dirs = [...store.live].map(({ task_id }) => dirOf(task_id).task_dir)
      await until(
        () => dirs.filter((dir) => isLauncherAlive(dir) && (requestKill(dir) || true)),
        (alive) => alive.length === 0,
      )
      await launchers[Symbol.asyncDispose]()
      stored[Symbol.dispose]()
    },
  }
}
