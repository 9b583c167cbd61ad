/** How the demo draws a graph: values in, lines out. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatDuration, renderFrame } from '../../../../shared/text/live-view/frame.ts'
import { colours, noColours } from '../../../../shared/text/live-view/palette.ts'
import type { GraphProgress, TaskProgress } from '../../../../shared/text/live-view/progress.ts'

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
      ' ✓ fetch  Does what fetch does    ━━━━━━━━━                                1.00s',
      ' ✓ again  Does what again does             ━━━                        ×2   400ms',
      ' ✗ look   it is not there                     ━                              3ms',
      ' ↷ show   dependency look failed',
      ' ⠴ count  Does what count does                 ━━━━━                       500ms',
      ' · sum    Does what sum does',
      ' ████████████░░░░░░  4/6  2.00s  1 running · 1 failed on purpose · 1 skipped',
    ])
  })

  test('marks a task that waits for an approval, also where there is no room for all tasks', () => {
    const asking = task('sure', { phase: 'asking', detail: 'waits for approval: Go?' })
    const lines = renderFrame('', { nowMs: 1, tasks: [asking] }, { columns: 80, rows: 24 }, noColours)
    expect(lines[2]).toMatch(/^ \? sure +waits for approval: Go\?/)
    expect(lines.at(-1)).toContain(' 0/1  0.00s  1 to approve')
    const tasks = [...Array.from({ length: 50 }, (_, i) => task(`t${i}`)), asking, { ...asking, id: 'other' }]
    const few = renderFrame('', { nowMs: 1, tasks }, { columns: 80, rows: 6 }, noColours).join('\n')
    expect(few).toMatch(/\? sure [\s\S]*\? other /)
    expect(few).toContain('… and 50 waiting')
  })

  test('says how many children of a task have ended, while it runs', () => {
    const children = { ended: 7, total: 20 }
    const tasks = [
      task('map', { phase: 'running', attempt: 1, startMs: 0, children }),
      task('end', { phase: 'success', children }),
    ]
    const lines = renderFrame('title', { nowMs: 10, tasks }, { columns: 80, rows: 24 }, noColours)
    expect([lines[2], lines[3]]).toEqual([
      expect.stringContaining('map  7 of 20'),
      expect.stringContaining('Does what end'),
    ])
  })

  test('says that an outcome was reused', () => {
    const tasks = [task('a', { phase: 'success', attempt: 2, isReused: true })]
    const [line] = renderFrame('', { nowMs: 1, tasks }, { columns: 80, rows: 24 }, noColours).slice(2)
    expect(line).toMatch(/^ ✓ a .* ×2 +reused$/)
  })

  test('raises no alarm about what the rules of the graph provide for', () => {
    const tasks = [
      task('a', { phase: 'failed', isTolerated: true, reason: 'exit status 1' }),
      task('b', { phase: 'skipped', isTolerated: true, reason: 'no dependency failed' }),
    ]
    const lines = renderFrame('title', { nowMs: 1, tasks }, { columns: 80, rows: 24 }, colours)
    expect(lines.join('')).not.toContain('\x1b[31m')
    expect(lines[2]).toContain('\x1b[33m!\x1b[0m')
    expect(Bun.stripANSI(lines[2]!)).toMatch(/^ ! a +tolerated: exit status 1/)
    expect(Bun.stripANSI(lines.at(-1)!)).toContain('1 failed, tolerated · 1 skipped')
    const [both] = renderFrame(
      '',
      { nowMs: 1, tasks: [...tasks, task('c', { phase: 'failed' })] },
      { columns: 100, rows: 24 },
      noColours,
    ).slice(-1)
    expect(both).toContain('1 failed on purpose · 1 failed, tolerated · 1 skipped')
    const surprise = task('a', { phase: 'failed', isTolerated: true, isSurprise: true, reason: 'no' })
    const red = renderFrame('', { nowMs: 1, tasks: [surprise] }, { columns: 80, rows: 24 }, colours)
    expect(red[2]).toContain('\x1b[31m✗')
    expect(Bun.stripANSI(red.at(-1)!)).toMatch(/ 1 failed$/)
  })

  test('says the same with colours', () => {
    const size = { columns: 80, rows: 24 }
    const coloured = renderFrame('title', graph, size, colours)
    expect(coloured.join('')).toContain('\x1b[32m')
    expect(coloured.map((line) => Bun.stripANSI(line))).toEqual(renderFrame('title', graph, size, noColours))
  })

  test('without room for the time line keeps the duration', () => {
    const [, , first] = renderFrame('title', graph, { columns: 36, rows: 24 }, noColours)
    expect(first).toBe(' ✓ fetch  Does what fet…       1.00s')
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

describe('a frame of hard cases', () => {
  const size = { columns: 60, rows: 12 }
  const draw = (tasks: TaskProgress[], at = size, paint = noColours) =>
    renderFrame('title', { nowMs: 2_000, tasks }, at, paint)

  test('of 100,000 tasks shows what is at work and counts the others', () => {
    const many = Array.from({ length: 100_000 }, (_, i) =>
      i === 70_000
        ? task('busy', { phase: 'running', attempt: 1, startMs: 0 })
        : task(`t${i}`, i < 60_000 ? { phase: 'success', attempt: 1, startMs: 0, endMs: i } : {}),
    )
    const lines = draw(many)
    expect(lines).toHaveLength(12)
    expect(lines.slice(2, -2).map((line) => line.slice(3).split(' ')[0]!)).toEqual([
      ...Array.from({ length: 7 }, (_, i) => `t${59_993 + i}`),
      'busy',
    ])
    expect(lines.at(-2)).toBe('   … and 59993 ended, 39999 waiting')
    expect(lines.at(-1)).toContain('60000/100000  2.00s  1 running')
  })

  test('wide characters take the columns that they take on a terminal', () => {
    const lines = draw([task('日本語のタスク', { title: '東京へ行く' }), task('plain', { title: '👩‍👩‍👧 goes' })])
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(60)
    const titleAt = (line: string, title: string) => Bun.stringWidth(line.slice(0, line.indexOf(title)))
    expect(titleAt(lines[2]!, '東京')).toBe(titleAt(lines[3]!, '👩'))
  })

  test('a long id leaves room for the others', () => {
    const [, , first] = draw([task('x'.repeat(5_000), { title: 'Does it' })], { columns: 80, rows: 12 })
    expect(first).toContain(`${'x'.repeat(39)}…  Does it`)
  })

  test('escapes in ids, titles and reasons are drawn, not obeyed', () => {
    const hostile = '\x1b[2J\x1b]0;owned\x07\r\n\u202eevil\x9b1m'
    const tasks = [
      task(hostile, { title: hostile }),
      task('b', { phase: 'failed', reason: hostile, isSurprise: true }),
      task('c', { phase: 'running', startMs: 0, attempt: 1, detail: hostile }),
    ]
    const lines = renderFrame(hostile, { nowMs: 0, tasks, notice: hostile }, { columns: 200, rows: 12 }, noColours)
    for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\u202e]/u)
    expect(lines[0]).toBe('\\e[2J\\e]0;owned\\u{7}\\r\\n\\u{202e}evil\\u{9b}1m')
  })

  test('tells why a task waits and what a running one reports, in place of the title', () => {
    const lines = draw([
      task('a', { detail: 'waits for b' }),
      task('b', { phase: 'running', attempt: 1, startMs: 0, detail: 'step 2 of 3' }),
      task('c', { phase: 'success', attempt: 1, startMs: 0, endMs: 1, detail: 'step 3 of 3' }),
    ])
    expect(lines[2]).toContain('waits for b')
    expect(lines[3]).toContain('step 2 of 3')
    expect(lines[4]).toContain('Does what c does')
  })

  test('leaves out of a reason what the attempt says', () => {
    const lines = draw([
      task('a', { phase: 'failed', attempt: 2, reason: 'task failed after all retries: exit status 3' }),
    ])
    expect(lines[2]).toStartWith(' ✗ a  exit status 3 ')
  })

  test('a notice has a line of its own', () => {
    const lines = renderFrame(
      't',
      { nowMs: 0, tasks: [task('a')], notice: 'no answer' },
      { columns: 80, rows: 5 },
      noColours,
    )
    expect(lines).toHaveLength(5)
    expect(lines.at(-1)).toBe(' no answer')
  })

  test('fits any size and any text', () => {
    const phases = ['waiting', 'running', 'retrying', 'success', 'failed', 'skipped', 'cancelled'] as const
    const anyTask = fc.record({
      id: fc.string({ unit: 'binary' }),
      title: fc.string({ unit: 'grapheme' }),
      phase: fc.constantFrom(...phases),
      attempt: fc.nat(1_000),
      reason: fc.string({ unit: 'binary' }),
      isSurprise: fc.boolean(),
      startMs: fc.nat(5_000),
    })
    fc.assert(
      fc.property(
        fc.array(anyTask),
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 40 }),
        (tasks, columns, rows) => {
          const lines = draw(tasks, { columns, rows })
          expect(lines.length).toBeLessThanOrEqual(rows)
          for (const line of lines) {
            expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
            expect(line).not.toMatch(/\p{Cc}/u)
          }
        },
      ),
    )
  })
})
