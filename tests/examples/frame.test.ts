/** How the demo draws a graph: values in, lines out. */
import { describe, expect, test } from 'bun:test'
import { formatDuration, renderFrame } from '../../examples/demo/frame.ts'
import { colours, noColours } from '../../examples/demo/palette.ts'
import type { GraphProgress, TaskProgress } from '../../examples/demo/progress.ts'

const task = (id: string, more: Partial<TaskProgress> = {}): TaskProgress => ({
  id,
  title: `Does what ${id} does`,
  phase: 'waiting',
  attempt: 0,
  reason: '',
  isSurprise: false,
  ...more,
})

const graph: GraphProgress = {
  nowMs: 2_000,
  tasks: [
    task('fetch', { phase: 'success', attempt: 1, startMs: 0, endMs: 1_000 }),
    task('again', { phase: 'success', attempt: 2, startMs: 1_000, endMs: 1_400 }),
    task('look', { phase: 'failed', attempt: 1, startMs: 1_400, endMs: 1_403, reason: 'it is not there' }),
    task('show', { phase: 'skipped', reason: 'dependency look failed' }),
    task('count', { phase: 'running', attempt: 1, startMs: 1_500 }),
    task('sum'),
  ],
}

describe('a frame', () => {
  test('has a line for each task: symbol, id, what it does, when, attempt, duration', () => {
    expect(renderFrame('title', graph, { columns: 80, rows: 24 }, noColours).map((line) => line.trimEnd())).toEqual([
      'title',
      '',
      ' ✓ fetch  Does what fetch does  ━━━━━━━━━                                  1.00s',
      ' ✓ again  Does what again does           ━━━━                         ×2   400ms',
      ' ✗ look   it is not there                    ━                               3ms',
      ' ↷ show   dependency look fai…',
      ' ⠴ count  Does what count does                ━━━━━                        500ms',
      ' · sum    Does what sum does',
      ' ████████████░░░░░░  4/6  2.00s  1 running · 1 failed on purpose · 1 skipped',
    ])
  })

  test('says the same with colours', () => {
    const size = { columns: 80, rows: 24 }
    const coloured = renderFrame('title', graph, size, colours)
    expect(coloured.join('')).toContain('\x1b[32m')
    expect(coloured.map((line) => Bun.stripANSI(line))).toEqual(renderFrame('title', graph, size, noColours))
  })

  test.each([1, 7, 20, 33, 40, 60, 79, 80, 120, 300])('of %d columns has no longer line', (columns) => {
    const lines = renderFrame('a title of some length', graph, { columns, rows: 24 }, colours)
    expect(lines).toHaveLength(9)
    expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(columns)
  })

  test('without room for the time line keeps the duration', () => {
    const [, , first] = renderFrame('title', graph, { columns: 36, rows: 24 }, noColours)
    expect(first).toBe(' ✓ fetch  Does what fet…       1.00s')
  })

  test.each([1, 2, 3, 4, 5, 7, 8, 9, 20])('of %d rows has no more lines', (rows) => {
    expect(renderFrame('title', graph, { columns: 80, rows }, noColours).length).toBeLessThanOrEqual(rows)
  })

  test('without room for all tasks shows what is at work and what ended last', () => {
    const lines = renderFrame('title', graph, { columns: 80, rows: 6 }, noColours)
    expect(lines.slice(2, 4).map((line) => line.slice(3, 8).trim())).toEqual(['look', 'count'])
    expect(lines[4]).toBe('   … and 3 ended, 1 waiting')
  })

  test('shows what nobody expected before anything else', () => {
    const tasks = [task('first', { phase: 'success', isSurprise: true, attempt: 1, endMs: 1 }), ...graph.tasks]
    expect(renderFrame('title', { ...graph, tasks }, { columns: 80, rows: 6 }, noColours)[2]).toStartWith(' ✓ first')
  })

  test('keeps the time line as wide as it is when tasks take longer than it showed at first', () => {
    const late = { ...graph, nowMs: 60_000 }
    const lines = renderFrame('title', late, { columns: 80, rows: 24 }, noColours)
    expect(lines[6]).toContain('━'.repeat(20))
    expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(80)
  })
})

test.each([
  [0, '0ms'],
  [3.4, '3ms'],
  [999, '999ms'],
  [1_000, '1.00s'],
  [12_345, '12.35s'],
  [-5, '0ms'],
])('a duration of %d ms is %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
