/** What the parts that run tasks stand on. Each of them names what it uses, and the parts that are built before it. */
import type { Log } from '../../shared/logs/log.ts'
import type { ServeConfig } from '../config.ts'
import type { CertificateAuthority } from '../egress/authority.ts'
import type { Egress } from '../egress/egress.ts'
import type { DirectoryGuard } from '../files/directory-guard.ts'
import type { SpareDirs } from '../files/spare-dirs.ts'
import type { StagedFiles } from '../files/staged-files.ts'
import type { TaskCgroups } from '../host/task-cgroups.ts'
import type { LauncherHost } from '../launch/launcher-host.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CapabilitySet } from '../plan/capability-set.ts'
import type { GroupCommit } from '../store/group-commit.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Secrets } from '../store/secrets.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { FileHolds } from './file-holds.ts'
import type { LaunchSettings } from './launch-plan.ts'
import type { LauncherRecords } from './launcher-records.ts'
import type { ResultFiles } from './result-files.ts'
import type { SandboxUsers } from './sandbox-users.ts'
import type { Totals } from './totals.ts'
import type { WaitingQueue } from './waiting-queue.ts'

export interface Ground {
  /** Absolute. */
  readonly dataDir: string
  readonly directory: Pick<DirectoryGuard, 'look' | 'ensure'>
  readonly commit: GroupCommit
  readonly store: TaskStore
  readonly capabilities: CapabilitySet
  readonly settings: LaunchSettings
  /** Undefined where cgroups are disabled. */
  readonly cgroups: Pick<TaskCgroups, 'forTask' | 'end'> | undefined
  /** Undefined where tasks have the user of the service. */
  readonly users: SandboxUsers | undefined
  readonly launchers: LauncherHost
  readonly egress: Egress
  readonly authority: CertificateAuthority
  readonly secrets: Secrets
  readonly staged: Pick<StagedFiles, 'use' | 'open' | 'sweep'>
  readonly spares: SpareDirs
  readonly ledger: Ledger
  readonly queue: WaitingQueue<LiveTask>
  readonly records: LauncherRecords
  readonly results: ResultFiles
  readonly holds: FileHolds
  readonly totals: Totals
  readonly log: Log
}

/** Some of the ground, and some of the settings of the service. */
export type Context<Parts extends keyof Ground, Settings extends keyof ServeConfig = never> = Pick<Ground, Parts> & {
  readonly config: Pick<ServeConfig, Settings>
}
