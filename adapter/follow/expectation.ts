/** Annotations of tasks for people: the title of a task, and its expected end. Pure. */
import type { ShownTask } from '../../shared/text/live-view/progress.ts'

/** Affects the output and the exit code of `run` and `watch`, not the execution of the task. */
export type Expectation = Partial<Pick<ShownTask, 'title' | 'expect' | 'attempts'>>

/** The annotations `title`, `expect` and `attempts`. Values of other types are left out: a file may have any. */
export function expectationOf({ title, expect, attempts }: Readonly<Record<string, unknown>>): Expectation {
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof expect === 'string' && { expect }),
    ...(typeof attempts === 'string' && { attempts: Number(attempts) }),
  }
}
