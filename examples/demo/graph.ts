/**
 * Loads the graphs of the demo and replaces placeholders such as `${FILES}` and `${WORK}` with values of this run.
 * Pure.
 */

export type Ending = 'success' | 'failed' | 'skipped'

export interface ExampleTask {
  readonly id: string
  readonly annotations: {
    /** What the task does, for people. */
    readonly title: string
    /** The status that it must end with: a task may be meant to fail. */
    readonly expect: Ending
    /** The same on a host that cannot limit memory. Absent: it makes no difference. */
    readonly expect_without_memory_limit?: Ending
    /** The number of the attempt that must be its last. Absent: any. */
    readonly attempts?: string
  }
}

export interface ExampleGraph {
  readonly tasks: readonly ExampleTask[]
}

/** The graph as it must end on a host that limits memory, or on one that cannot. */
export function expectedOn({ tasks }: ExampleGraph, limitsMemory: boolean): ExampleGraph {
  if (limitsMemory) return { tasks }
  return {
    tasks: tasks.map((task) => {
      const { expect, expect_without_memory_limit } = task.annotations
      return { ...task, annotations: { ...task.annotations, expect: expect_without_memory_limit ?? expect } }
    }),
  }
}

/** `json` with each `${NAME}` replaced. They stand inside strings, so the values are written as JSON strings are. */
export function fillIn(json: string, values: Readonly<Record<string, string>>): string {
  return json.replaceAll(/\$\{([A-Z]+)\}/g, (placeholder, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`nothing is known to put in place of ${placeholder}`)
    return JSON.stringify(value).slice(1, -1)
  })
}

export const hasPlaceholders = (json: string): boolean => /\$\{[A-Z]+\}/.test(json)
