/**
 * Files for a task, of other tasks or with a given content: who may have them, and when they are copied.
 *
 * They are checked when the task is submitted, and copied when it has its reservation, before it is written down that it is
 * about to be launched. So a crash during the copy leaves a task that waits, and its next copy begins anew.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { TaskInput } from '../../shared/contract/task-inputs.ts'
import { type InputSource, ofMissingBundle, ofMissingTask, type TaskInputs } from '../../shared/request/inputs.ts'
import { shortened } from '../../shared/request/text.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { cloneFile } from '../files/file-copy.ts'
import { type FilledFrom, fillWorkspace, InputFault, sourceText } from '../files/filled-workspace.ts'
import { taskDir } from '../files/task-dir.ts'
import type { Copied } from '../files/tree-copy.ts'
import type { TaskError } from '../launch/classification.ts'
import { invalidInput } from '../refusal.ts'
import type { Change, LiveTask } from '../store/live-task.ts'
import type { Context } from './context.ts'
import type { Discards } from './discards.ts'
import { cancelledBeforeStart, type Ending } from './ending.ts'
import { ensureTaskDir } from './launch.ts'

type InputsContext = Context<'store' | 'holds' | 'staged' | 'dataDir' | 'users', 'maxInputFiles' | 'maxInputBytes'> & {
  readonly discards: Discards
}

/** How the copy went: what is to be noted, how the task ended, or undefined if the service stops first. */
export type Filled = { readonly change: Change } | { readonly ending: Ending } | undefined

/** Ends a copy that nobody waits for any more. */
class NotNeeded extends Error {}

export class Inputs {
  readonly #context: InputsContext

  constructor(context: InputsContext) {
    this.#context = context
  }

  /** Throws 400 for a request whose inputs the task cannot have. */
  check({ inputs, control_context }: Pick<TaskRequest, 'inputs' | 'control_context'>): void {
    if (inputs === undefined) return
    const fault = this.#faultOf(inputs, control_context.tenant ?? null)
    if (fault !== undefined) throw invalidInput(fault.message, fault.details)
  }

  /** Copies the inputs of a task into its workspace. Never rejects. */
  async fill(task: LiveTask, isStopping: () => boolean): Promise<Filled> {
    const isKilled = () => task.row.kill_requested_at !== null
    const began = performance.now()
    try {
      const inputs = await this.#copy(task, () => {
        if (isKilled() || isStopping()) throw new NotNeeded()
      })
      return { change: copiedChange(inputs, performance.now() - began) }
    } catch (error) {
      if (!(error instanceof NotNeeded)) return { ending: { ...failedBy(error), finishedAt: Date.now() } }
      return isKilled() ? { ending: cancelledBeforeStart(Date.now()) } : undefined
    }
  }

  async #copy(task: LiveTask, check: () => void): Promise<Readonly<Record<string, TaskInput>>> {
    const { store, discards, holds, dataDir, users, config } = this.#context
    const dir = taskDir(dataDir, task.task_id)
    const request = store.requestOf(task.task_id)
    const { inputs = {}, sandbox } = request
    check()
    const fault = this.#faultOf(inputs, task.row.tenant)
    if (fault !== undefined) throw fault
    const sources = Object.values(inputs).flatMap((input) => ('task_id' in input ? [input.task_id] : []))
    using _ = holds.hold(task.task_id, sources)
    ensureTaskDir(dir, request)
    const entries = Object.entries(inputs)
    const copied = await fillWorkspace(
      {
        workspaceSubdir: sandbox.workspace_subdir ?? '',
        owner: users?.of(task.task_id),
        clone: cloneFile,
        discard: (path) => discards.take(task.task_id, path),
        limits: { files: config.maxInputFiles, bytes: config.maxInputBytes },
        ...{ dir, check },
      },
      entries.map(([path, source]) => this.#filledFrom(path, source)),
    )
    for (const [i, [path, source]] of entries.entries()) checkContent(path, source, copied[i]!)
    return Object.fromEntries(entries.map(([path, source], i) => [path, { ...withoutContent(source), ...copied[i]! }]))
  }

  #filledFrom(path: string, source: InputSource): FilledFrom {
    const { staged, dataDir } = this.#context
    if ('content' in source) return { path, content: source.content }
    if ('staged' in source) return { path, staged: source.staged, open: () => staged.open(source.staged) }
    const { task_id, file } = source
    return { path, task_id, file, source: taskDir(dataDir, task_id) }
  }

  #faultOf(inputs: TaskInputs, tenant: string | null): InputFault | undefined {
    for (const [path, source] of Object.entries(inputs)) {
      if ('content' in source) continue
      const at = `inputs.${shortened(path)}`
      const fault =
        'staged' in source ? this.#faultOfStaged(at, source.staged) : this.#faultOfSource(at, source.task_id, tenant)
      if (fault !== undefined) return fault
    }
    return undefined
  }

  #faultOfStaged(at: string, sha256: string): InputFault | undefined {
    if (this.#context.staged.use(sha256) !== undefined) return undefined
    const message = `${at}: there is no staged bundle ${sha256}: send it first (PUT /api/v1/runtime/files/${sha256})`
    return new InputFault(message, ofMissingBundle(sha256))
  }

  #faultOfSource(at: string, task_id: string, tenant: string | null): InputFault | undefined {
    const { store, holds } = this.#context
    const fault = (what: string) => new InputFault(`${at}: ${what}`)
    const gone = (what: string) => new InputFault(`${at}: ${what}`, ofMissingTask(task_id))
    const row = store.get(task_id)
    if (row === undefined) return gone(`there is no task ${task_id}, or it was removed with its files: run it again`)
    if (row.tenant !== tenant) return fault(`task ${task_id} belongs to another tenant`)
    if (store.liveTask(task_id) !== undefined) return fault(`task ${task_id} has not ended`)
    if (holds.removalOf(task_id) === undefined) return undefined
    return gone(`task ${task_id} is being removed with its files: run it again`)
  }
}

function checkContent(path: string, source: InputSource, copied: Copied): void {
  if (source.sha256 === undefined || source.sha256 === copied.sha256) return
  const what = sourceText(source)
  throw new InputFault(`inputs.${shortened(path)}: ${what} has another content: its sha256 is ${copied.sha256}`)
}

/** What a status shows before anything is copied. */
export const plannedInputs = (inputs: TaskInputs | undefined): string | null =>
  inputs === undefined
    ? null
    : JSON.stringify(Object.fromEntries(Object.entries(inputs).map(([path, source]) => [path, withoutContent(source)])))

/** A source as a status shows it. */
function withoutContent(source: InputSource): TaskInput {
  if (!('content' in source)) return source
  const { content, ...expected } = source
  return { ...expected, bytes: Buffer.byteLength(content), files: 1 }
}

function copiedChange(inputs: Readonly<Record<string, TaskInput>>, ms: number): Change {
  const all = Object.values(inputs)
  const sum = (amount: 'files' | 'bytes') => all.reduce((total, input) => total + (input[amount] ?? 0), 0)
  const data = { files: sum('files'), bytes: sum('bytes'), duration_ms: Math.round(ms) }
  return {
    patch: { inputs: JSON.stringify(inputs) },
    events: [{ event_type: 'inputs_copied', message: 'the inputs are in the workspace', data }],
  }
}

const failedBy = (error: unknown): { readonly status: 'failed'; readonly error: TaskError } => ({
  status: 'failed',
  error: {
    code: error instanceof InputFault ? 'invalid_input' : 'launch_failed',
    message: messageOf(error),
    ...(error instanceof InputFault && error.details !== undefined && { details: error.details }),
  },
})

/** Hashes of the bundles that tasks take when they start. */
export function stagedForTasks(live: Iterable<Pick<LiveTask, 'row'>>): ReadonlySet<string> {
  const needed = new Set<string>()
  for (const { row } of live) {
    if (row.inputs === null || row.started_at !== null) continue
    for (const { staged } of Object.values(JSON.parse(row.inputs) as Record<string, { staged?: string }>)) {
      if (staged !== undefined) needed.add(staged)
    }
  }
  return needed
}
