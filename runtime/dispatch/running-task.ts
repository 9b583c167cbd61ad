/** A task that is being launched, runs, or is just being ended: it holds its reservation. */
import type { Asked } from '../launcher/classification.ts'
import type { LiveTask } from '../store/task-store.ts'

export class RunningTask {
  readonly task: LiveTask
  /** Its launcher was started by an earlier service: we were restarted since. */
  readonly isAdopted: boolean
  /** What was asked of it, as far as its ending needs it; undefined for one of an earlier service. */
  asked: Asked | undefined
  /**
   * `performance.now()` when it was launched, or adopted; when we heard of its start; and when its end was asked for: the
   * clock of launchers does not jump with the one on the wall, and neither must ours. On a full disk it may take a while
   * until the place of a task is written down and it is launched.
   */
  launchedSince: number | undefined
  startedSince: number | undefined
  killedSince: number | undefined
  /** The same when its outcome was looked for: who reads our pipe takes away what launchers say. */
  lookedSince = performance.now()
  /** It was killed together with its launcher, which did not do it. */
  isForced = false
  /** It could not be found out whom to ask for its end: said once. */
  isKillHindered = false
  /** Its end is being collected. */
  isEnding = false
  #settled = Promise.withResolvers<void>()
  #delay: PromiseWithResolvers<void> | undefined

  constructor(task: LiveTask, isAdopted: boolean) {
    this.task = task
    this.isAdopted = isAdopted
    if (isAdopted) this.launchedSince = performance.now()
    if (task.row.started_at !== null) this.settle()
  }

  /** Resolves once it is known that the task has started, or that it will not. */
  get settled(): Promise<void> {
    return this.#settled.promise
  }

  settle(): void {
    this.#settled.resolve()
  }

  /** Its launch was refused and is tried again later: it has no launcher. */
  get isDelayed(): boolean {
    return this.#delay !== undefined
  }

  /** No launch of it is under way until `endDelay` is called, which resolves this. */
  delay(): Promise<void> {
    this.settle()
    this.launchedSince = undefined
    this.#delay = Promise.withResolvers()
    return this.#delay.promise
  }

  readonly endDelay = (): void => {
    this.#settled = Promise.withResolvers()
    this.#delay?.resolve()
    this.#delay = undefined
  }
}
