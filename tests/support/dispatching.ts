/** A dispatcher for one test, with a real store and real launchers, without HTTP and without planning. */

import { makeTaskDir, type TaskDir, taskDir } from '../../runtime/files/task-dir.ts'
import { isLauncherAlive, requestKill } from '../../runtime/launch/launcher-files.ts'
import type { LauncherEvent } from '../../runtime/launch/notify.ts'
import { Ledger } from '../../runtime/ledger/ledger.ts'
import { planTask } from '../../runtime/plan/plan.ts'
import type { LiveTask } from '../../runtime/store/live-task.ts'
import { Secrets } from '../../runtime/store/secrets.ts'
import type { TaskRow } from '../../runtime/store/tasks.ts'
import type { Sync } from '../../runtime/store/wal-sync.ts'
import { Dispatcher } from '../../runtime/tasks/dispatcher.ts'
import { Ends } from '../../runtime/tasks/end.ts'
import { InFlight } from '../../runtime/tasks/flight.ts'
import { Force } from '../../runtime/tasks/force.ts'
import { KillSender, Kills } from '../../runtime/tasks/kill.ts'
import { baseEnvironment, type LaunchSettings } from '../../runtime/tasks/launch-plan.ts'
import { LauncherRecords } from '../../runtime/tasks/launcher-records.ts'
import { Networks } from '../../runtime/tasks/networks.ts'
import { recoverTasks } from '../../runtime/tasks/recover.ts'
import { ResultFiles } from '../../runtime/tasks/result-files.ts'
import { Starts } from '../../runtime/tasks/start.ts'
import { taskDirContent } from '../../runtime/tasks/task-dir-content.ts'
import { Totals } from '../../runtime/tasks/totals.ts'
import { WaitingQueue } from '../../runtime/tasks/waiting-queue.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { bootId } from '../../shared/process/processes.ts'
import { hostWithout } from './capabilities.ts'
import { testEgress } from './egress.ts'
import { HELD } from './held.ts'
import { LauncherService } from './launcher-service.ts'
import { request } from './runtime-requests.ts'
import { acceptedRow, storedTasks } from './stored-tasks.ts'
import { until } from './until.ts'

const GRACE_MS = 500
const RETRY_MS = 10_000

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
  const totals = new Totals()
  const inFlight = new InFlight(store, totals)
  const launchers = new LauncherService({
    onEvent: (event) => inFlight.heard(event),
    onServerEnd: () => inFlight.serverEnded(),
  })
  const { log } = launchers.log
  const ledger = new Ledger({ task_slots: slots })
  const queue = new WaitingQueue<LiveTask>(ledger)
  const settings: LaunchSettings = {
    graceMs: GRACE_MS,
    maxOutputBytes: 1_000_000,
    baseEnvironment: baseEnvironment(process.env, 'test'),
    sandbox: { capabilities: hostWithout('seccomp'), masks: [], exposed: [] },
  }
  const records = new LauncherRecords(dataDir)
  const results = new ResultFiles(dataDir, log)
  const cgroups = undefined
  const force = new Force({ records, cgroups, serviceId: crypto.randomUUID(), log })
  const networks = new Networks({ egress: testEgress(dataDir), store, log })
  const ends = new Ends({ store, records, force, results, settings, networks, totals, log })
  const { host } = launchers
  const secrets = new Secrets(new SecretsDirectory(''))
  const capabilities = hostWithout()
  const starts = new Starts({
    host,
    settings,
    cgroups,
    capabilities,
    store,
    records,
    ends,
    force,
    secrets,
    networks,
    users: undefined,
  })
  const dispatcher = new Dispatcher({
    ...{ store, commit, ledger, queue, inFlight, records, starts, ends, force, results, networks, totals, log },
    users: undefined,
    inputs: { fill: async () => ({ change: { patch: {}, events: [] } }) },
    outputs: { reduce: async (_, ending) => ending },
    directory: HELD,
    bootId: bootId(),
    graceMs: GRACE_MS,
    retryMs: RETRY_MS,
  })
  const sender = new KillSender(records, log)
  const kills = new Kills({ store, queue, inFlight, dispatcher, records, force, sender, log })

  /** A task in the database, with its directory; nothing starts it. */
  async function accept(parts: SubmitTaskRequest, more: Partial<TaskRow> = {}): Promise<LiveTask> {
    const asked = request(parts)
    const plan: ExecutionPlan = planTask(asked, hostWithout(), {
      capability_mode: 'adaptive',
      network: 'none',
      access: { runtime: 'token', control: 'token' },
      default_limits: { pids_max: undefined, disk_bytes: undefined },
    })
    const text = JSON.stringify(asked)
    makeTaskDir(dirOf(asked.task_id), taskDirContent(asked, text))
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
    ...{ dispatcher, inFlight, launchers, store, disk, accept, dirOf },
    hear: (event: LauncherEvent) => inFlight.heard(event),
    kill: (taskId: string) => kills.kill({ taskId, owner: null, traceId: 't' }),
    recover: () =>
      recoverTasks({
        ...{ store, ledger, dispatcher, records, ends, kills: sender, networks, log },
        bootId: bootId(),
        retryMs: RETRY_MS,
      }),
    eventTypes: (taskId: string) => store.events(taskId).map(({ event_type }) => event_type),
    [Symbol.asyncDispose]: async () => {
      dispatcher.stop()
      const dirs = [...store.live].map(({ task_id }) => dirOf(task_id).task_dir)
      const noneAlive = () =>
        until(
          () => dirs.filter((dir) => isLauncherAlive(dir) && (requestKill(dir) || true)),
          (alive) => alive.length === 0,
        )
      await noneAlive()
      await launchers[Symbol.asyncDispose]()
      await noneAlive() // what the fork server was asked for last
      stored[Symbol.dispose]()
    },
  }
}
