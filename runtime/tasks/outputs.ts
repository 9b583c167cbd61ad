/** What a task with `outputs` leaves in its workspace: the files that match, once the task has ended. */
import { type KeptAmount, keepFiles } from '../files/kept-files.ts'
import { faultMessage } from '../files/open-directory.ts'
import { letNobodyPass, taskDir } from '../files/task-dir.ts'
import { OutputPatterns } from '../plan/output-patterns.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Context } from './context.ts'
import type { Discards } from './discards.ts'
import type { Ending } from './ending.ts'

type OutputsContext = Context<'store' | 'directory' | 'dataDir' | 'log', 'maxKeptFiles' | 'maxKeptBytes'> & {
  readonly discards: Discards
}

export class Outputs {
  readonly #context: OutputsContext

  constructor(context: OutputsContext) {
    this.#context = context
  }

  /**
   * Reduces the workspace, and returns the ending of the task. A task that succeeded and whose outputs cannot be kept has
   * failed. Never rejects.
   */
  async reduce(task: LiveTask, ending: Ending): Promise<Ending> {
    const { store, discards, directory, dataDir, config, log } = this.#context
    const limits = { files: config.maxKeptFiles, bytes: config.maxKeptBytes }
    const { task_id } = task
    try {
      task.outputs ??= store.requestOf(task_id).outputs ?? null
      // Under the path of a lost directory lie the tasks of another service.
      if (task.outputs === null || directory.look() !== undefined) return ending
      const dir = taskDir(dataDir, task_id)
      const reduced = await keepFiles({
        dir,
        patterns: new OutputPatterns(task.outputs),
        limits,
        close: () => letNobodyPass(dir),
        discard: (path) => discards.take(task_id, path),
      })
      if ('tooMuch' in reduced) return failedBy(ending, tooMuch(reduced.tooMuch, limits))
      return withKept(ending, reduced.kept)
    } catch (error) {
      const cause = faultMessage(error)
      log.warn('cannot reduce a workspace to the outputs of its task', { task_id, cause })
      return failedBy(ending, { code: 'internal', message: `cannot keep the outputs of the task: ${cause}` })
    }
  }
}

/** A task that did not succeed keeps its own error, and an event tells the other one. */
const failedBy = (ending: Ending, error: NonNullable<Ending['error']>): Ending => ({
  ...ending,
  outputsFault: error,
  ...(ending.status === 'success' && { status: 'failed' as const, error }),
})

const tooMuch = (kind: keyof KeptAmount, limits: KeptAmount): NonNullable<Ending['error']> => ({
  code: 'resource_limit_exceeded',
  message: `outputs has more than ${limits[kind]} ${kind} (--max-kept-${kind}); its workspace stays as it is`,
})

const withKept = (ending: Ending, { files, bytes }: KeptAmount): Ending =>
  ending.usage === undefined ? ending : { ...ending, usage: { ...ending.usage, kept_files: files, kept_bytes: bytes } }
