/** The end of a task: how it ended, and how that is written down. */

import { messageOf } from '../../shared/contract/errors.ts'
import { removeSecretFiles } from '../files/secret-files.ts'
import type { Asked } from '../launch/classification.ts'
import { explainFault } from '../launch/faults.ts'
import type { Outcome } from '../launch/outcome.ts'
import { MAX_LAST_WORDS_BYTES, networkRemedy, refusedRemedy } from '../plan/network-remedy.ts'
import type { Change, LiveTask } from '../store/live-task.ts'
import { lengthOf, readEnd } from '../store/shown-output.ts'
import type { TaskRow } from '../store/tasks.ts'
import type { Ground } from './context.ts'
import { type Ending, type OutputLengths, startedProcess } from './ending.ts'
import type { Force } from './force.ts'
import type { Launch } from './launch.ts'
import { endingOf, internal, launchFailed, lost } from './launch-ending.ts'
import { askedOf } from './launch-plan.ts'
import type { Networks } from './networks.ts'

/** The exit code of a launcher that started no task (outcome.h). */
const NOT_STARTED = 125

/** Milliseconds by which the last words of a launcher may come after its end. */
const LAST_WORDS_MS = 100

type EndsContext = Pick<Ground, 'store' | 'records' | 'results' | 'settings' | 'totals' | 'log'> & {
  readonly force: Force
  readonly networks: Networks
}

export class Ends {
  readonly #context: EndsContext

  constructor(context: EndsContext) {
    this.#context = context
  }

  /** Resolves with the end of the task when the launch is over. Never rejects. */
  async afterLaunch(task: LiveTask, launch: Launch): Promise<Ending> {
    // The launcher says that the outcome is there before it syncs that: what we commit now is as durable, and sooner.
    const { exitCode, error } = await launch.over
    if (error !== undefined) return { status: 'failed', error, finishedAt: Date.now() }
    if (exitCode === NOT_STARTED && !this.#context.records.hasBegun(task)) {
      await this.#context.force.endWhatIsLeft(task)
      return await notBegun(launch)
    }
    return await this.#fromRecord(task, launch, exitCode)
  }

  /** The outcome of a task, if there is one. Throws if the outcome or the request cannot be read. */
  fromOutcome(task: LiveTask): Ending | undefined {
    const { outcome } = this.#context.records.read(task)
    return outcome === undefined ? undefined : this.#classified(task, outcome)
  }

  async #fromRecord(task: LiveTask, launch: Launch, exitCode: number | undefined): Promise<Ending> {
    const { force, records } = this.#context
    try {
      const { outcome, process } = records.read(task)
      if (outcome !== undefined) return this.#classified(task, outcome, launch)
      await force.endWhatIsLeft(task)
      const started = process === undefined ? undefined : startedProcess(process)
      return { ...lost({ task, launch }, exitCode), started, output: this.#outputNow(task) }
    } catch (error) {
      await force.endWhatIsLeft(task)
      const ending = internal({ task, launch }, `cannot read how the task ended: ${messageOf(error)}`)
      return { ...ending, output: this.#outputNow(task) }
    }
  }

  /** Nothing of the task runs any more. */
  #outputNow(task: LiveTask): OutputLengths {
    const { stdout_path, stderr_path } = this.#context.records.dirOf(task)
    return { stdout: lengthOf(stdout_path), stderr: lengthOf(stderr_path) }
  }

  #classified(task: LiveTask, outcome: Outcome, launch?: Launch): Ending {
    task.isSilent = outcome.stdout_bytes === 0 && outcome.stderr_bytes === 0
    return this.#withRemedy(task, endingOf(outcome, launch?.asked ?? this.#storedAsked(task)))
  }

  /** Adds what to do to the error of a task that failed for want of a network. An output that cannot be read has no words. */
  #withRemedy(task: LiveTask, ending: Ending): Ending {
    const { error } = ending
    if (error?.code !== 'exit_nonzero') return ending
    const remedy = this.#remedyOf(task)
    return remedy === undefined
      ? ending
      : { ...ending, error: { ...error, details: { ...(error.details as object), remedy } } }
  }

  #remedyOf(task: LiveTask): string | undefined {
    const { networks, records } = this.#context
    const refusal = networks.useOf(task)?.firstRefusal
    if (refusal !== undefined) return refusedRemedy(refusal)
    const { plan } = task
    if (task.isSilent || plan.effective_sandbox.namespaces?.net !== true) return undefined
    const { stdout_path, stderr_path } = records.dirOf(task)
    return networkRemedy(plan, [stderr_path, stdout_path].map(lastWordsIn).join('\n'))
  }

  #storedAsked(task: LiveTask): Asked {
    const { store, records, settings } = this.#context
    return askedOf(store.requestOf(task.task_id), task.plan, records.dirOf(task), settings)
  }

  /** Writes down the end of a task. Resolves once it is durable, and then others see it. */
  async writeDown(task: LiveTask, change: Change): Promise<void> {
    const { store, results, networks, totals, log } = this.#context
    this.removeSecrets(task)
    networks.cut(task)
    const row = await store.end(task, change, {
      meanwhile: (ended) => results.prepare(task, ended),
      beforeSeen: () => {
        results.write(task)
        networks.forget(task.task_id)
      },
    })
    log.info('task ended', endedFields(row))
    totals.ended(row)
  }

  /** Removes the files with secrets of a task of which nothing runs. Never throws. */
  removeSecrets(task: LiveTask): void {
    if (task.secretFiles.length === 0) return
    const { records, log } = this.#context
    const fault = removeSecretFiles(records.dirOf(task), task.secretFiles)
    if (fault === undefined) return
    log.error('cannot remove the files with the secrets of a task', { task_id: task.task_id, cause: messageOf(fault) })
  }
}

function lastWordsIn(path: string): string {
  try {
    return readEnd(path, MAX_LAST_WORDS_BYTES)
  } catch {
    return '' // a fault of the disk must not cost the outcome
  }
}

/** The disk was full or the directory was gone, so there is no outcome, and there was no process. */
async function notBegun({ fault }: Launch): Promise<Ending> {
  const found = await Promise.race([fault, Bun.sleep(LAST_WORDS_MS)])
  if (found === undefined) return launchFailed('the launcher of the task could not begin (see launchers.log)')
  const { message, details } = explainFault(found.step, found.errno)
  return launchFailed(message, details)
}

const endedFields = (row: TaskRow) => ({
  ...(row.trace_id !== null && { trace_id: row.trace_id }),
  task_id: row.task_id,
  status: row.status,
  ...(row.error !== null && { error: JSON.parse(row.error) as object }),
})
