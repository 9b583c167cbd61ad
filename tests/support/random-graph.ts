/** Random graphs for property tests: acyclic, in any order, with ids that break careless code. */
import fc from 'fast-check'

export type RandomTask = { id: string; type: string; depends_on: string[] }

/** Names that objects already have, that look like indexes, or that need escaping somewhere. */
const ODD_IDS = ['__proto__', 'constructor', '0', 'a b', 'ü/%2F?"\\', '😀', 'toString', 'x\ny']

const idOf = (index: number) => ODD_IDS[index] ?? `t${index}`

interface RandomGraphOptions {
  readonly minTasks?: number
  readonly maxTasks?: number
  readonly type?: string
}

/** An acyclic graph. A dependency may be named twice, and may stand before or after its dependents. */
export const randomGraph = ({ minTasks = 1, maxTasks = 16, type = 'os' }: RandomGraphOptions = {}) =>
  fc
    .array(fc.record({ dependencies: fc.array(fc.nat(), { maxLength: 4 }), place: fc.nat() }), {
      minLength: minTasks,
      maxLength: maxTasks,
    })
    .map((nodes): RandomTask[] =>
      nodes
        .map(({ dependencies, place }, i) => {
          const depends_on = i === 0 ? [] : dependencies.map((dependency) => idOf(dependency % i))
          return { place, task: { id: idOf(i), type, depends_on } }
        })
        .sort((a, b) => a.place - b.place)
        .map(({ task }) => task),
    )

/** A graph that was acyclic until one of its tasks was made to depend on one that waits for it. */
export const randomCyclicGraph = (options: RandomGraphOptions = {}) =>
  fc
    .tuple(randomGraph({ minTasks: 2, ...options }), fc.nat(), fc.array(fc.nat(), { maxLength: 8 }))
    .map(([tasks, pick, steps]) => {
      const byId = new Map(tasks.map((task) => [task.id, task]))
      const waiting = tasks.filter((task) => task.depends_on.length > 0)
      if (waiting.length === 0) {
        tasks[0]!.depends_on.push(tasks[1]!.id)
        waiting.push(tasks[0]!)
      }
      const start = waiting[pick % waiting.length]!
      let ancestor = byId.get(start.depends_on[0]!)!
      for (const step of steps) {
        const up = ancestor.depends_on
        if (up.length > 0) ancestor = byId.get(up[step % up.length]!)!
      }
      ancestor.depends_on.push(start.id)
      return tasks
    })
