/**
 * Groups the tasks of a graph into boxes for the drawing. Pure.
 *
 * Each task is a box, with these exceptions. A task with tasks of its own, a group, is a box that has them inside. Folded,
 * it is as large as others; open, it is the frame of what is inside, which is drawn by the same rules.
 *
 * Siblings, which have the same dependencies and the same dependents, or are children of the same task, share a box until
 * the user opens it. If a layer has more boxes than a window has rows, tasks whose ids begin alike share a box there. If
 * there are still too many boxes, this applies to every layer. If there are too many even then, each layer is one box.
 */
import { GROUP_TYPE } from '../../../shared/contract/fan-out.ts'
import type { GraphTask } from '../model/wire.ts'

type BoxTask = Pick<GraphTask, 'id' | 'parent'> & Partial<Pick<GraphTask, 'type'>>

export interface Box {
  /** The key of the box. Depends on its tasks, not on their states. */
  readonly key: string
  readonly label: string
  /** Indexes into the tasks of the graph. Of a folded group, the group and all that is in it. */
  readonly members: readonly number[]
  /** Whether it is a group that is folded or open. Absent for all others. */
  readonly isOpen?: boolean
  /** The box of the open group that it is in. */
  readonly frame?: number
}

export interface Boxes {
  readonly boxes: readonly Box[]
  /** What leads to what, for keys and lights: into open groups, and out of them. */
  readonly edges: readonly (readonly [from: number, to: number])[]
  /** What lines are drawn for: those between boxes of the same frame. */
  readonly drawn: readonly (readonly [from: number, to: number])[]
  /** Index of the box of each task. */
  readonly boxOf: readonly number[]
}

/** What a user has opened and folded. */
export interface Opened {
  /** Keys of boxes of siblings that are open. */
  readonly siblings: ReadonlySet<string>
  /** By the ids of groups. */
  readonly groups: Readonly<Record<string, boolean>>
}

/** Minimum number of siblings that share a box. */
export const MIN_FAN_OUT = 12

/** Maximum boxes in one layer. More would be too small to read in one window. */
export const MAX_LAYER_BOXES = 40

/** Maximum boxes in one drawing. More would be too small to read. */
export const MAX_BOXES = 500

export function boxesOf(
  tasks: readonly BoxTask[],
  edges: readonly (readonly [from: string, to: string])[],
  opened: Opened,
): Boxes {
  const indexOf = new Map(tasks.map(({ id }, index) => [id, index]))
  const byIndex = edges.flatMap(([from, to]): [number, number][] => {
    const [a, b] = [indexOf.get(from), indexOf.get(to)]
    return a === undefined || b === undefined ? [] : [[a, b]]
  })
  const groupOf = tasks.map(({ parent }): number | undefined => {
    const at = parent === undefined ? undefined : indexOf.get(parent)
    return at !== undefined && tasks[at]!.type === GROUP_TYPE ? at : undefined
  })
  const ids = tasks.map(({ id }) => ({ id }))
  const inside = Map.groupBy(tasks.keys(), (task) => groupOf[task])
  const edgesIn = Map.groupBy(
    byIndex.filter(([from, to]) => groupOf[from] === groupOf[to]),
    ([from]) => groupOf[from],
  )
  const boxesIn = (group: number | undefined) =>
    levelBoxes(group === undefined ? tasks : ids, inside.get(group) ?? [], edgesIn.get(group) ?? [], opened.siblings)
  const outer = boxesIn(undefined)
  let count = outer.length
  const inner: Box[] = []
  const boxes = outer.map((box, frame): Box => {
    const [task] = box.members
    const children = inside.get(task)
    if (box.members.length > 1 || children === undefined) return box
    const { id } = tasks[task!]!
    const wanted = Object.hasOwn(opened.groups, id) ? opened.groups[id] : undefined
    const isSmall = children.length < MIN_FAN_OUT && count + children.length <= MAX_BOXES
    const isOpen = wanted ?? isSmall
    if (!isOpen) return { ...box, members: [task!, ...children], isOpen }
    const some = boxesIn(task)
    count += some.length
    inner.push(...some.map((one) => ({ ...one, frame })))
    return { ...box, isOpen }
  })
  return joined([...boxes, ...inner], byIndex, groupOf)
}

/** The boxes of what is drawn together: `some` of the tasks, with the edges between them. */
function levelBoxes(
  tasks: readonly BoxTask[],
  some: readonly number[],
  edges: readonly (readonly [number, number])[],
  opened: ReadonlySet<string>,
): Box[] {
  const at = new Map(some.map((task, index) => [task, index]))
  const own = some.map((task) => tasks[task]!)
  const ownEdges = edges.map(([from, to]): [number, number] => [at.get(from)!, at.get(to)!])
  const layerOf = layerOfTasks(own.length, ownEdges)
  const ids = own.map(({ id }) => id)
  const siblings = siblingKeys(own, ownEdges)
  const kindOf = (task: number) => `${layerOf[task]} ${prefixOf(ids[task]!)}`
  const bySiblings: Way = { nameOf: (task) => siblings[task]!, least: MIN_FAN_OUT }
  const tall = tallLayers(grouped(ids, bySiblings, NONE), layerOf)
  const ways: readonly Way[] = [
    { nameOf: (task) => (tall.has(layerOf[task]!) ? kindOf(task) : siblings[task]!), least: MIN_FAN_OUT },
    { nameOf: kindOf, least: 2 },
    { nameOf: (task) => `${layerOf[task]}`, least: 2 },
  ]
  const way = ways.find((one) => grouped(ids, one, NONE).length <= MAX_BOXES) ?? ways.at(-1)!
  return grouped(ids, way, opened).map((box) => ({ ...box, members: box.members.map((task) => some[task]!) }))
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

/**
 * The edges between boxes, without repetition. Boxes of the same layer have no edges between them. What leads out of an open
 * group leads out of what is inside, if anything does.
 */
function joined(
  boxes: readonly Box[],
  edges: readonly (readonly [number, number])[],
  groupOf: readonly (number | undefined)[],
): Boxes {
  const boxOf = new Array<number>(groupOf.length).fill(0)
  for (const [index, { members }] of boxes.entries()) for (const task of members) boxOf[task] = index
  const isPlaced = new Set(boxes.flatMap(({ members }) => members))
  for (const [task, group] of groupOf.entries())
    if (group !== undefined && !isPlaced.has(task)) boxOf[task] = boxOf[group]! // that of siblings
  const seen = new Set<number>()
  const between: [number, number][] = []
  for (const [from, to] of edges) {
    const [a, b] = [boxOf[from]!, boxOf[to]!]
    const key = a * boxes.length + b
    if (a === b || seen.has(key)) continue
    seen.add(key)
    between.push([a, b])
  }
  const frameOf = (box: number) => boxes[box]!.frame
  const drawn = between.filter(([a, b]) => frameOf(a) === frameOf(b))
  const left = new Set(
    between.flatMap(([a, b]) => (frameOf(a) !== undefined && frameOf(b) !== frameOf(a) ? frameOf(a)! : [])),
  )
  const isAround = ([a, b]: readonly [number, number]) => left.has(a) && frameOf(b) !== a
  return { boxes, drawn, edges: left.size === 0 ? between : between.filter((edge) => !isAround(edge)), boxOf }
}

/** A name for each task that siblings share. */
function siblingKeys(tasks: readonly BoxTask[], edges: readonly (readonly [number, number])[]): string[] {
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

/** The id without the number or name at its end: `test-17` is `test`, and so is `test[17]`. `each[3]/build` is `each[…]/build`. */
const prefixOf = (id: string): string =>
  (MEMBER.test(id) ? id.replace(MEMBER, '[…]/') : undefined) ??
  /^(.+)\[\d+\]$/.exec(id)?.[1] ??
  /^(.+?)[-_./:]?\d+$/.exec(id)?.[1] ??
  /^(.*?)[-_./:]/.exec(id)?.[1] ??
  id

/** What differs between the ids of a task of a group for each element. */
const MEMBER = /\[\d+\]\/(?=[^/]+$)/

function commonPrefix(ids: readonly string[]): string {
  let prefix = ids[0] ?? ''
  const kind = prefixOf(prefix)
  if (MEMBER.test(prefix) && ids.every((id) => prefixOf(id) === kind)) return kind
  for (const id of ids) while (!id.startsWith(prefix)) prefix = prefix.slice(0, -1)
  const clean = prefix.replace(/[-_./: []+$/, '')
  return clean === '' ? `${ids.length} tasks` : `${clean} …`
}
