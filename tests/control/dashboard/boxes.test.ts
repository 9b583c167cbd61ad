/** Goal: graphs of any size have a drawing of at most 500 boxes, or of one box for each layer. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { boxesOf, MAX_BOXES, MAX_LAYER_BOXES, MIN_FAN_OUT } from '../../../control/dashboard/graph-view/boxes.ts'
import { edgesOfDrawing } from '../../../control/dashboard/graph-view/child-edges.ts'
import { groupLookOf, groupProgress } from '../../../control/dashboard/graph-view/group-progress.ts'
import type { GraphTask } from '../../../control/dashboard/model/wire.ts'

const none = { siblings: new Set<string>(), groups: {} }
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
  const opened = boxesOf(tasks, edges, { ...none, siblings: new Set([closed.boxes[1]!.key]) })
  expect(opened.boxes.length).toBe(MIN_FAN_OUT + 2)
  expect(opened.edges.length).toBe(2 * MIN_FAN_OUT)
})

test('the children of a task for each element hang on it, however many, and what waits for it comes after them', () => {
  for (const count of [MIN_FAN_OUT, 9_998]) {
    const children = Array.from({ length: count }, (_, i) => ({ id: `map[${i}]`, parent: 'map' }))
    const tasks = [{ id: 'map' }, ...children, { id: 'end' }]
    const edges = edgesOfDrawing(tasks, [['map', 'end']])
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
  expect(edgesOfDrawing(tasksOf(['a', 'b']), plain)).toBe(plain)
})

test('tasks of on_end come after all that nothing waits for, children too', () => {
  const tasks = [...tasksOf(['a', 'map', 'b', 'on_end/0', 'on_end/x']), { id: 'map[0]', parent: 'map' }]
  const edges = edgesOfDrawing(tasks, [['a', 'b']])
  expect(edges.filter(([, to]) => to === 'on_end/0').map(([from]) => from)).toEqual(['map', 'b', 'on_end/x', 'map[0]'])
  expect(edgesOfDrawing(tasksOf(['on_end/0', 'a']), [['on_end/0', 'a']])).toEqual([['on_end/0', 'a']])
})

test('children of a group hang on it by the first of each element, and lead on by the last', () => {
  const children = ['each[0]/a', 'each[0]/b', 'each[1]/a', 'each[1]/b'].map((id) => ({ id, parent: 'each' }))
  const inside = [
    ['each[0]/a', 'each[0]/b'],
    ['each[1]/a', 'each[1]/b'],
  ] as const
  const edges = edgesOfDrawing([...tasksOf(['each']), ...children, ...tasksOf(['end'])], [['each', 'end'], ...inside])
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

describe('a group', () => {
  const group = (id: string) => ({ id, type: 'group' })
  const childrenOf = (parent: string, count: number) =>
    Array.from({ length: count }, (_, i) => ['a', 'b'].map((id) => ({ id: `${parent}[${i}]/${id}`, parent }))).flat()
  /** `first`, `each` with `count` elements of two tasks, and `end`. */
  const drawn = (count: number, groups: Readonly<Record<string, boolean>> = {}) => {
    const children = childrenOf('each', count)
    const tasks = [...tasksOf(['first']), group('each'), ...children, ...tasksOf(['end'])]
    const within = Array.from({ length: count }, (_, i) => [`each[${i}]/a`, `each[${i}]/b`] as const)
    const edges = edgesOfDrawing(tasks, [['first', 'each'], ['each', 'end'], ...within])
    return boxesOf(tasks, edges, { ...none, groups })
  }
  const shown = ({ boxes }: ReturnType<typeof boxesOf>) => boxes.map(({ label, frame }) => [label, frame])

  test('is a frame around its children while they are few; lines outside end at it, keys and lights go through it', () => {
    const found = drawn(2)
    expect(shown(found)).toEqual([
      ['first', undefined],
      ['each', undefined],
      ['end', undefined],
      ['each[0]/a', 1],
      ['each[0]/b', 1],
      ['each[1]/a', 1],
      ['each[1]/b', 1],
    ])
    expect(found.boxes[1]).toMatchObject({ isOpen: true, members: [1] })
    const lines: (readonly [number, number])[] = [
      [0, 1],
      [1, 2],
      [3, 4],
      [5, 6],
    ]
    expect(found.drawn.toSorted()).toEqual(lines)
    expect(found.edges.toSorted()).toEqual([
      [0, 1],
      [1, 3],
      [1, 5],
      [3, 4],
      [4, 2],
      [5, 6],
      [6, 2],
    ])
  })

  test('is one box when folded, with all that is in it', () => {
    for (const found of [drawn(2, { each: false }), drawn(6)]) {
      expect(shown(found).map(([label]) => label)).toEqual(['first', 'each', 'end'])
      expect(found.boxes[1]).toMatchObject({ isOpen: false })
      expect(found.boxOf.filter((box) => box === 1)).toHaveLength(found.boxes[1]!.members.length)
      expect(found.edges).toEqual(found.drawn)
      expect(found.drawn.flat()).toEqual([0, 1, 1, 2])
    }
    expect(drawn(2, { each: false }).boxes[1]!.members).toEqual([1, 2, 3, 4, 5])
  })

  test('of many elements has a box for each kind of them when it is open', () => {
    const found = drawn(MAX_LAYER_BOXES + 1, { each: true })
    expect(shown(found).slice(3)).toEqual([
      ['each[…]/a', 1],
      ['each[…]/b', 1],
    ])
    expect(found.drawn).toContainEqual([3, 4])
  })

  test('may have any id', () => {
    const tasks = [group('constructor'), ...childrenOf('constructor', 1)]
    expect(boxesOf(tasks, edgesOfDrawing(tasks, []), none).boxes[0]!.isOpen).toBe(true)
  })

  test('among many like it shares a box, in which its children are', () => {
    const ids = named('group', MIN_FAN_OUT)
    const tasks = ids.flatMap((id) => [group(id), ...childrenOf(id, 1)])
    const { boxes, boxOf } = boxesOf(tasks, edgesOfDrawing(tasks, []), none)
    expect(boxes.map(({ label }) => label)).toEqual(['group …'])
    expect(new Set(boxOf)).toEqual(new Set([0]))
  })

  test('opens by itself only while the drawing stays readable', () => {
    const ids = named('group', MAX_BOXES / 2)
    // Each group waits for another task, so no two of them are siblings.
    const tasks = ids.flatMap((id) => [{ id: `before-${id}` }, group(id), ...childrenOf(id, 1)])
    const edges = ids.map((id) => [`before-${id}`, id] as const)
    expect(boxesOf(tasks, edgesOfDrawing(tasks, edges), none).boxes.length).toBeLessThanOrEqual(MAX_BOXES)
  })
})

test('a group tells how many of its elements, or tasks, have ended, failed and run', () => {
  const task = (id: string, status: string) => ({ id, parent: 'g', type: 'noop', status }) as GraphTask
  const parent = (more: object = {}) => ({ id: 'g', type: 'group', status: 'running', ...more }) as GraphTask
  const children = [
    ...[task('g[0]/a', 'failed'), task('g[0]/b', 'running')],
    ...[task('g[1]/a', 'success'), task('g[1]/b', 'success')],
    ...[task('g[2]/a', 'pending'), task('g[2]/b', 'pending')],
    ...[task('g[3]/a', 'failed'), task('g[3]/b', 'skipped')],
  ]
  expect(groupProgress(parent(), children)).toEqual({
    counted: { failed: 2, running: 1, success: 2, pending: 2, skipped: 1 },
    sentence: '2 of 4 elements ended, 2 failed, 1 run',
    short: '2/4 · 2 failed · 1 run',
  })
  const plain = [task('g/a', 'success'), task('g/b', 'cancelling')]
  expect(groupProgress(parent(), plain).sentence).toBe('1 of 2 tasks ended, 1 run')
  // The page has only some of its children.
  const counted = { success: 5_000, failed: 1, pending: 999 }
  expect(groupProgress(parent({ child_count: 6_000, children: counted }), children)).toEqual({
    ...{ counted, sentence: '5,001 of 6,000 tasks ended, 1 failed', short: '5,001/6,000 · 1 failed' },
  })
  expect(groupProgress(parent(), []).short).toBe('0 of 0 tasks')
  const asking = { ...task('g/a', 'pending'), waiting: { reason: 'approval' } } as GraphTask
  expect([groupLookOf(parent(), [asking]), groupLookOf(parent({ status: 'failed' }), [asking])]).toEqual([
    ...(['asking', 'failed'] as const),
  ])
})
