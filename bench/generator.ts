/** The parent's side of a load generator. One generator serves the whole bench, so no figure includes its start. */
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { Lifetime } from './lifetime.ts'
import type { JobAnswer, JobName, Jobs } from './load/jobs.ts'

export class Generator {
  readonly #child: Subprocess
  #answered: ((answer: JobAnswer) => void) | undefined

  constructor(lifetime: Lifetime) {
    this.#child = lifetime.spawn([process.execPath, join(import.meta.dir, 'load.ts')], {
      ipc: (answer: JobAnswer) => this.#answered?.(answer),
    })
    this.#child.exited.then(() => this.#answered?.({ error: 'the load generator ended' }))
  }

  get pid(): number {
    return this.#child.pid
  }

  /** Does one job; the one before must be done. */
  async run<N extends JobName>(name: N, input: Jobs[N]['input']): Promise<Jobs[N]['output']> {
    const answer = await new Promise<JobAnswer>((resolve) => {
      this.#answered = resolve
      this.#child.send({ name, input })
    })
    if ('error' in answer) throw new Error(answer.error)
    return answer.output as Jobs[N]['output']
  }
}
