/** What a task with `outputs` leaves in its workspace: the files that match, once the task has ended. */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import { OutputPatterns } from '../intake/output-patterns.ts'
import { type KeptLimits, keepFiles, type TooMuch } from '../store/kept-files.ts'
import type { LiveTask, TaskStore } from '../store/task-store.ts'
import type { Ending } from './ending.ts'
import type { LauncherRecords } from './launcher-records.ts'

export interface OutputsOptions {
  readonly store: Pick<TaskStore, 'requestOf'>
  readonly records: Pick<LauncherRecords, 'dirOf'>
  readonly limits: KeptLimits
  readonly log: Log
}

export class Outputs {
  readonly #options: OutputsOptions

  constructor(options: OutputsOptions) {
    this.#options = options
  }

  /**
   * Reduces the workspace, and returns the ending of the task. A task that succeeded with more files than a task may keep has
   * failed; then its workspace stays as it is. Never rejects.
   */
  async reduce(task: LiveTask, ending: Ending): Promise<Ending> {
    const { store, records, limits, log } = this.#options
    try {
      task.outputs ??= (JSON.parse(store.requestOf(task.task_id)) as TaskRequest).outputs ?? null
      if (task.outputs === null) return ending
      const tooMuch = await keepFiles(records.dirOf(task).workspace, new OutputPatterns(task.outputs), limits)
      return tooMuch === undefined || ending.status !== 'success' ? ending : { ...ending, ...failed(tooMuch, limits) }
    } catch (error) {
      log.warn('cannot reduce a workspace to the outputs of its task', {
        task_id: task.task_id,
        cause: messageOf(error),
      })
      return ending
    }
  }
}

const failed = ({ kind }: TooMuch, limits: KeptLimits): Pick<Ending, 'status' | 'error'> => ({
  status: 'failed',
  error: {
    code: 'resource_limit_exceeded',
    message: `outputs has more than ${limits[kind]} ${kind} (--max-kept-${kind}); its workspace stays as it is`,
  },
})
