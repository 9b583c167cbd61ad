/** A running graph as lines, where there is no terminal. */
import { expect, test } from 'bun:test'
import { PlainView } from '../../../../shared/text/live-view/plain-view.ts'
import type { TaskProgress } from '../../../../shared/text/live-view/progress.ts'

const task = (id: string, more: Partial<TaskProgress> = {}): TaskProgress => ({
  ...{ id, title: '', phase: 'waiting', attempt: 0, reason: '', isSurprise: false },
  ...more,
})

function view(title = 'title') {
  let text = ''
  const plain = new PlainView({ write: (more) => (text += more) }, title)
  return { plain, text: () => text }
}

test('a line for each change, in the order of the times', () => {
  const { plain, text } = view()
  plain.show({ nowMs: 0, tasks: [task('a'), task('b')] })
  const running = [
    task('a', { phase: 'running', attempt: 1, startMs: 20 }),
    task('b', { phase: 'running', attempt: 1, startMs: 10 }),
  ]
  plain.show({ nowMs: 1_000, tasks: running })
  plain.show({ nowMs: 1_100, tasks: running })
  plain.show({
    nowMs: 2_000,
    tasks: [running[0]!, task('b', { phase: 'failed', attempt: 2, endMs: 1_500, reason: 'no' })],
  })
  expect(text()).toBe(`title
  0.01s  b: running
  0.02s  a: running
  1.50s  b: failed (attempt 2): no
`)
})

test('a task that waits in the queue of a runtime service says for what', () => {
  const { plain, text } = view()
  const queued = { phase: 'waiting', startMs: 10, attempt: 1, detail: 'runtime r: waiting for task_slots' } as const
  plain.show({ nowMs: 1_000, tasks: [task('a', queued), task('b', { detail: 'after a' })] })
  plain.show({ nowMs: 2_000, tasks: [task('a', { phase: 'running', startMs: 10, attempt: 1 }), task('b')] })
  expect(text()).toBe(`title
  1.00s  a: waiting: runtime r: waiting for task_slots
  2.00s  a: running
`)
})

test('a failure that the graph tolerates says so', () => {
  const { plain, text } = view()
  plain.show({ nowMs: 0, tasks: [task('a', { phase: 'failed', attempt: 2, isTolerated: true, reason: 'no' })] })
  expect(text()).toBe('title\n  0.00s  a: failed, tolerated (attempt 2): no\n')
})

test('a notice is a line when it changes', () => {
  const { plain, text } = view()
  for (const notice of ['away', 'away', '', 'away']) plain.show({ nowMs: 0, tasks: [], notice })
  expect(text()).toBe('title\n  0.00s  away\n  0.00s  away\n')
})

test('every text stays on its line and is harmless', () => {
  const { plain, text } = view('\x1b[2J')
  plain.show({ nowMs: 0, tasks: [task('a\n  9.99s  b', { phase: 'failed', reason: '\x1b[31m' })] })
  expect(text()).toBe('\\e[2J\n  0.00s  a\\n  9.99s  b: failed: \\e[31m\n')
})

test('many children have a line only if they fail, and their parent has one for each tenth of them', () => {
  const { plain, text } = view()
  const parent = (ended: number, total: number) =>
    task(`p${total}`, { phase: 'running', attempt: 1, startMs: 10, children: { ended, total } })
  const child = (id: string, more: Partial<TaskProgress>) => task(`p${id}`, { parent: `p${id.split('[')[0]}`, ...more })
  const running = { phase: 'running', attempt: 1, startMs: 30 } as const
  plain.show({ nowMs: 50, tasks: [parent(0, 30), child('30[0]', running), parent(0, 2), child('2[0]', running)] })
  for (let ended = 1; ended < 8; ended++) {
    const failed = { phase: 'failed', attempt: 1, endMs: 90, reason: 'no' } as const
    const first = child('30[0]', ended < 7 ? { phase: 'success', attempt: 1, endMs: 70 } : failed)
    plain.show({ nowMs: 100 * ended, tasks: [parent(ended, 30), first, parent(1, 2)] })
  }
  expect(text()).toBe(`title
  0.01s  p30: running
  0.01s  p2: running
  0.03s  p2[0]: running
  0.30s  p30: running: 3 of 30
  0.60s  p30: running: 6 of 30
  0.09s  p30[0]: failed: no
`)
})
