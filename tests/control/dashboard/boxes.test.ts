/** Goal: graphs of any size have a drawing of at most 500 boxes, or of one box for each layer. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { boxesOf, MAX_BOXES, MAX_LAYER_BOXES, MIN_FAN_OUT } from '../../../control/dashboard/graph-view/boxes.ts'
import { withChildEdges } from '../../../control/dashboard/graph-view/child-edges.ts'

const none = new Set<string>()
const tasksOf = (ids: readonly string[]) => ids.map((id) => ({ id }))
const named = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

test('every task is in one box, and edges join the boxes of tasks that are joined', () => {
  const graph = fc.tuple(
    fc.uniqueArray(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 40 }),
    fc.array(fc.tuple(fc.nat(39), fc.nat(39)), { maxLength: 80 }),
  )
  fc.assert(
    fc.property(graph, ([ids, pairs]) => {
      const pairsInOrder = pairs.filter(([from, to]) => from < to && to < ids.length)
      const edges = pairsInOrder.map(([from, to]) => [ids[from]!, ids[to]!] as const)
      const { boxes, edges: between, boxOf } = boxesOf(tasksOf(ids), edges, none)
      const members = boxes.flatMap((box) => box.members).sort((a, b) => a - b)
      expect(members).toEqual(ids.map((_, index) => index))
      for (const [from, to] of pairsInOrder) {
        expect(between).toContainEqual([boxOf[from]!, boxOf[to]!])
      }
      expect(new Set(between.map(String)).size).toBe(between.length)
    }),
  )
})

test('the children of a fan-out are one box until it is opened', () => {
  const children = named('part', MIN_FAN_OUT)
  const edges = children.flatMap((id) => [['split', id] as const, [id, 'join'] as const])
  const tasks = tasksOf(['split', ...children, 'join'])
  const closed = boxesOf(tasks, edges, none)
  expect(closed.boxes.map(({ label, members }) => [label, members.length])).toEqual([
    ['split', 1],
    ['part …', MIN_FAN_OUT],
    ['join', 1],
  ])
  const opened = boxesOf(tasks, edges, new Set([closed.boxes[1]!.key]))
  expect(opened.boxes.length).toBe(MIN_FAN_OUT + 2)
  expect(opened.edges.length).toBe(2 * MIN_FAN_OUT)
})

test('the children of a task for each element hang on it, however many, and what waits for it comes after them', () => {
  for (const count of [MIN_FAN_OUT, 9_998]) {
    const children = Array.from({ length: count }, (_, i) => ({ id: `map[${i}]`, parent: 'map' }))
    const tasks = [{ id: 'map' }, ...children, { id: 'end' }]
    const edges = withChildEdges(tasks, [['map', 'end']])
    const { boxes, edges: between } = boxesOf(tasks, edges, none)
    expect(boxes.map(({ label, members }) => [label, members.length])).toEqual([
      ['map', 1],
      ['map …', count],
      ['end', 1],
    ])
    expect(between.toSorted()).toEqual([
      [0, 1],
      [0, 2],
      [1, 2],
    ])
  }
  const plain = [['a', 'b']] as const
  expect(withChildEdges(tasksOf(['a', 'b']), plain)).toBe(plain)
})

test('children of a group hang on it by the first of each element, and lead on by the last', () => {
  const children = ['each[0]/a', 'each[0]/b', 'each[1]/a', 'each[1]/b'].map((id) => ({ id, parent: 'each' }))
  const inside = [
    ['each[0]/a', 'each[0]/b'],
    ['each[1]/a', 'each[1]/b'],
  ] as const
  const edges = withChildEdges([...tasksOf(['each']), ...children, ...tasksOf(['end'])], [['each', 'end'], ...inside])
  expect(edges).toEqual([
    ['each', 'end'],
    ...inside,
    ['each', 'each[0]/a'],
    ['each', 'each[1]/a'],
    ['each[0]/b', 'end'],
    ['each[1]/b', 'end'],
  ])
})

test('a few siblings are boxes of their own', () => {
  const children = named('part', MIN_FAN_OUT - 1)
  const edges = children.map((id) => ['split', id] as const)
  expect(boxesOf(tasksOf(['split', ...children]), edges, none).boxes.length).toBe(MIN_FAN_OUT)
})

test('a layer that is taller than a window shows a box for each kind, other layers do not change', () => {
  const count = MAX_LAYER_BOXES + 1
  const rows = Array.from({ length: count }, (_, row) => row)
  const edges = rows.flatMap((row): (readonly [string, string])[] => [
    ['split', `map-${row}`],
    [`map-${row}`, `sort-${row}`],
    [`map-${row}`, `sort-${(row * 3) % count}`],
    ...(row < MIN_FAN_OUT ? ([[`sort-${row}`, `save-${row}`]] as const) : []),
  ])
  const ids = ['split', ...named('map', count), ...named('sort', count), ...named('save', MIN_FAN_OUT)]
  const labels = boxesOf(tasksOf(ids), edges, none).boxes.map(({ label, members }) => `${label} ${members.length}`)
  expect(labels).toEqual([
    'split 1',
    `map … ${count}`,
    `sort … ${count}`,
    ...named('save', MIN_FAN_OUT).map((id) => `${id} 1`),
  ])
})

test('many different tasks are grouped by layer and prefix, and then by layer', () => {
  const grid = (prefix: (column: number, row: number) => string) => {
    const ids = Array.from({ length: 10 }, (_, column) => Array.from({ length: 200 }, (_, row) => prefix(column, row)))
    const edges = ids.flatMap((column, at) =>
      at === 0
        ? []
        : column.flatMap((id, row) => [
            [ids[at - 1]![row]!, id] as const,
            [ids[at - 1]![(row * 7) % 200]!, id] as const,
          ]),
    )
    return boxesOf(tasksOf(ids.flat()), edges, none).boxes
  }
  const byPrefix = grid((column, row) => `step${column}-${'abcd'[row % 4]}-${row}`)
  expect(byPrefix.length).toBeLessThanOrEqual(MAX_BOXES)
  expect(byPrefix.length).toBeGreaterThan(10)
  expect(grid((column, row) => `${row}x${column}`).length).toBe(10)
})
