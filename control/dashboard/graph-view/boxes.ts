/**
 * Groups the tasks of a graph into boxes for the drawing. Pure.
 *
 * Each task is a box, with these exceptions. Siblings, which have the same dependencies and the same dependents, or are
 * children of the same task, share a box until the user opens it. If a layer has more boxes than a window has rows, tasks
 * whose ids begin alike share a box there. If there are still too many boxes, this applies to every layer. If there are
 * too many even then, each layer is one box.
 */
import type { GraphTask } from '../model/wire.ts'

export interface Box {
  /** The key of the box. Depends on its tasks, not on their states. */
  readonly key: string
  readonly label: string
  /** Indexes into the tasks of the graph. */
  readonly members: readonly number[]
}

export interface Boxes {
  readonly boxes: readonly Box[]
  readonly edges: readonly (readonly [from: number, to: number])[]
  /** Index of the box of each task. */
  readonly boxOf: readonly number[]
}

/** Minimum number of siblings that share a box. */
export const MIN_FAN_OUT = 12

/** Maximum boxes in one layer. More would be too small to read in one window. */
export const MAX_LAYER_BOXES = 40

/** Maximum boxes in one drawing. More would be too small to read. */
export const MAX_BOXES = 500

export function boxesOf(
  tasks: readonly Pick<GraphTask, 'id' | 'parent'>[],
  edges: readonly (readonly [from: string, to: string])[],
  opened: ReadonlySet<string>,
): Boxes {
  const indexOf = new Map(tasks.map(({ id }, index) => [id, index]))
  const byIndex = edges.flatMap(([from, to]): [number, number][] => {
    const [a, b] = [indexOf.get(from), indexOf.get(to)]
    return a === undefined || b === undefined ? [] : [[a, b]]
  })
  const layerOf = layerOfTasks(tasks.length, byIndex)
  const ids = tasks.map(({ id }) => id)
  const siblings = siblingKeys(tasks, byIndex)
  const kindOf = (task: number) => `${layerOf[task]} ${prefixOf(ids[task]!)}`
  const bySiblings: Way = { nameOf: (task) => siblings[task]!, least: MIN_FAN_OUT }
  const tall = tallLayers(grouped(ids, bySiblings, NONE), layerOf)
  const ways: readonly Way[] = [
    { nameOf: (task) => (tall.has(layerOf[task]!) ? kindOf(task) : siblings[task]!), least: MIN_FAN_OUT },
    { nameOf: kindOf, least: 2 },
    { nameOf: (task) => `${layerOf[task]}`, least: 2 },
  ]
  const way = ways.find((one) => grouped(ids, one, NONE).length <= MAX_BOXES) ?? ways.at(-1)!
  return joined(grouped(ids, way, opened), byIndex, tasks.length)
}

const NONE: ReadonlySet<string> = new Set()

/** Minimum number of tasks with a common name that share a box. */
interface Way {
  readonly nameOf: (task: number) => string
  readonly least: number
}

/** Layers with more boxes than fit into a window. */
function tallLayers(boxes: readonly Box[], layerOf: readonly number[]): ReadonlySet<number> {
  const counts = new Map<number, number>()
  for (const { members } of boxes) {
    const layer = layerOf[members[0]!]!
    counts.set(layer, (counts.get(layer) ?? 0) + 1)
  }
  return new Set([...counts.keys()].filter((layer) => counts.get(layer)! > MAX_LAYER_BOXES))
}

/** Puts tasks with the same name into one box, if there are enough of them and the user has not opened the box. */
function grouped(ids: readonly string[], { nameOf, least }: Way, opened: ReadonlySet<string>): Box[] {
  const groups = new Map<string, number[]>()
  for (let task = 0; task < ids.length; task++) {
    const name = nameOf(task)
    const members = groups.get(name)
    if (members === undefined) groups.set(name, [task])
    else members.push(task)
  }
  return [...groups.values()].flatMap((members): Box[] => {
    const key = `${ids[members[0]!]} +${members.length - 1}`
    const isOpen = opened.has(key) && members.length <= MAX_BOXES
    if (members.length < least || isOpen) {
      return members.map((task) => ({ key: ids[task]!, label: ids[task]!, members: [task] }))
    }
    return [{ key, label: commonPrefix(members.map((task) => ids[task]!)), members }]
  })
}

/** The edges between boxes, without repetition. Boxes of the same layer have no edges between them. */
function joined(boxes: readonly Box[], edges: readonly (readonly [number, number])[], count: number): Boxes {
  const boxOf = new Array<number>(count).fill(0)
  for (const [index, { members }] of boxes.entries()) for (const task of members) boxOf[task] = index
  const seen = new Set<number>()
  const between: [number, number][] = []
  for (const [from, to] of edges) {
    const [a, b] = [boxOf[from]!, boxOf[to]!]
    const key = a * boxes.length + b
    if (a === b || seen.has(key)) continue
    seen.add(key)
    between.push([a, b])
  }
  return { boxes, edges: between, boxOf }
}

/** A name for each task that siblings share. */
function siblingKeys(
  tasks: readonly Pick<GraphTask, 'id' | 'parent'>[],
  edges: readonly (readonly [number, number])[],
): string[] {
  const before: number[][] = tasks.map(() => [])
  const after: number[][] = tasks.map(() => [])
  for (const [from, to] of edges) {
    before[to]!.push(from)
    after[from]!.push(to)
  }
  const list = (numbers: number[]) => numbers.sort((a, b) => a - b).join()
  return tasks.map(({ id, parent }, task) => {
    if (parent !== undefined) return `child ${parent}`
    const isAlone = before[task]!.length + after[task]!.length === 0
    return isAlone ? `alone ${prefixOf(id)}` : `${list(before[task]!)} > ${list(after[task]!)}`
  })
}

/** `tasks` come in topological order. */
function layerOfTasks(count: number, edges: readonly (readonly [number, number])[]): number[] {
  const after: number[][] = Array.from({ length: count }, () => [])
  for (const [from, to] of edges) after[from]!.push(to)
  const layerOf = new Array<number>(count).fill(0)
  for (let task = 0; task < count; task++) {
    for (const next of after[task]!) layerOf[next] = Math.max(layerOf[next]!, layerOf[task]! + 1)
  }
  return layerOf
}

/** The id without the number or name at its end: `test-17` is `test`, and so is `test[17]`. */
const prefixOf = (id: string): string =>
  /^(.+)\[\d+\]$/.exec(id)?.[1] ?? /^(.+?)[-_./:]?\d+$/.exec(id)?.[1] ?? /^(.*?)[-_./:]/.exec(id)?.[1] ?? id

function commonPrefix(ids: readonly string[]): string {
  let prefix = ids[0] ?? ''
  for (const id of ids) while (!id.startsWith(prefix)) prefix = prefix.slice(0, -1)
  const clean = prefix.replace(/[-_./: []+$/, '')
  return clean === '' ? `${ids.length} tasks` : `${clean} …`
}
