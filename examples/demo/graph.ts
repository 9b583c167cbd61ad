/** The graph of the demo: a file in which `${FILES}`, `${WORK}` and `${SOURCES}` stand for what only a run knows. Pure. */

export interface ExampleTask {
  readonly id: string
  readonly annotations: {
    /** What the task does, for people. */
    readonly title: string
    /** The status that it must end with: a task may be meant to fail. */
    readonly expect: 'success' | 'failed' | 'skipped'
    /** The number of the attempt that must be its last. Absent: any. */
    readonly attempts?: string
  }
}

export interface ExampleGraph {
  readonly tasks: readonly ExampleTask[]
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
