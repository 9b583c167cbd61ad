/** A dispatcher for one test, with a real store and real launchers, without HTTP and without planning. */

import { join } from 'node:path'
import { serveSettings } from '../../runtime/config.ts'
import { CertificateAuthority } from '../../runtime/egress/authority.ts'
import { StagedFiles } from '../../runtime/files/staged-files.ts'
import { makeTaskDir, type TaskDir, taskDir } from '../../runtime/files/task-dir.ts'
import { isLauncherAlive, requestKill } from '../../runtime/launch/launcher-files.ts'
import type { LauncherEvent } from '../../runtime/launch/notify.ts'
import { Ledger } from '../../runtime/ledger/ledger.ts'
import { planTask } from '../../runtime/plan/plan.ts'
import type { Sync } from '../../runtime/store/group-commit.ts'
import type { LiveTask } from '../../runtime/store/live-task.ts'
import { Secrets } from '../../runtime/store/secrets.ts'
import type { TaskRow } from '../../runtime/store/tasks.ts'
import { Discards } from '../../runtime/tasks/discards.ts'
import { Dispatcher } from '../../runtime/tasks/dispatcher.ts'
import { Ends } from '../../runtime/tasks/end.ts'
import { FileHolds } from '../../runtime/tasks/file-holds.ts'
import { InFlight } from '../../runtime/tasks/flight.ts'
import { Force } from '../../runtime/tasks/force.ts'
import { Inputs } from '../../runtime/tasks/inputs.ts'
import { Kills } from '../../runtime/tasks/kill.ts'
import { baseEnvironment } from '../../runtime/tasks/launch-plan.ts'
import { LauncherRecords } from '../../runtime/tasks/launcher-records.ts'
import { Networks } from '../../runtime/tasks/networks.ts'
import { Outputs } from '../../runtime/tasks/outputs.ts'
import { recoverTasks } from '../../runtime/tasks/recover.ts'
import { ResultFiles } from '../../runtime/tasks/result-files.ts'
import { taskDirContent } from '../../runtime/tasks/task-dir-content.ts'
import { Totals } from '../../runtime/tasks/totals.ts'
import { WaitingQueue } from '../../runtime/tasks/waiting-queue.ts'
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { readCommandLine } from '../../shared/settings/flags.ts'
import { hostWithout } from './capabilities.ts'
import { testEgress } from './egress.ts'
import { HELD } from './held.ts'
import { LauncherService } from './launcher-service.ts'
import { request } from './runtime-requests.ts'
import { acceptedRow, storedTasks } from './stored-tasks.ts'
import { until } from './until.ts'

const GRACE_MS = 500

interface DispatchingOptions {
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
  const inFlight = new InFlight()
  const launchers = new LauncherService({
    onEvent: (event) => inFlight.heard(event),
    onServerEnd: () => inFlight.serverEnded(),
  })
  const { log } = launchers.log
  const ledger = new Ledger({ task_slots: slots })
  const base = {
    ...{ store, commit, dataDir, inFlight, ledger, log, directory: HELD, cgroups: undefined, users: undefined },
    config: readCommandLine(['--termination-grace-ms', String(GRACE_MS)], {}, serveSettings).values,
    capabilities: hostWithout(),
    settings: {
      ...{ graceMs: GRACE_MS, maxOutputBytes: 1_000_000, baseEnvironment: baseEnvironment(process.env, 'test') },
      sandbox: { capabilities: hostWithout('seccomp'), masks: [], exposed: [] },
    },
    launchers: launchers.host,
    ...{ egress: testEgress(dataDir), authority: new CertificateAuthority(join(dataDir, 'ca')) },
    secrets: new Secrets(new SecretsDirectory('')),
    queue: new WaitingQueue<LiveTask>(ledger),
    records: new LauncherRecords(dataDir),
    results: new ResultFiles(dataDir, log),
    totals: new Totals(),
    holds: new FileHolds(),
    staged: new StagedFiles({
      ...{ dataDir, directory: HELD, needed: () => new Set<string>() },
      limits: { bundle: 0, all: 0 },
    }),
  }
  const networks = new Networks(base)
  const force = new Force(base, crypto.randomUUID())
  const ends = new Ends({ ...base, networks, force })
  const discards = new Discards(base)
  const inputs = new Inputs({ ...base, discards })
  const outputs = new Outputs({ ...base, discards })
  const dispatcher = new Dispatcher({ ...base, networks, force, ends, inputs, outputs })
  const kills = new Kills({ ...base, dispatcher })

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
    recover: () => recoverTasks({ ...base, networks, ends, dispatcher }),
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
