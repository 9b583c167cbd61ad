/** What a person wrote about a task in its annotations: what it does, and how it is meant to end. Pure. */
import type { ShownTask } from '../../shared/live-view/progress.ts'

/** It changes what `run` and `watch` show and their exit code, not how the task runs. */
export type Expectation = Partial<Pick<ShownTask, 'title' | 'expect' | 'attempts'>>

/** The annotations `title`, `expect` and `attempts`. Values of other types are left out: a file may have any. */
export function expectationOf({ title, expect, attempts }: Readonly<Record<string, unknown>>): Expectation {
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof expect === 'string' && { expect }),
    ...(typeof attempts === 'string' && { attempts: Number(attempts) }),
  }
}
