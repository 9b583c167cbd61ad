/** From records of control to what the demo shows, and to whether it went as the example says. */
import { describe, expect, test } from 'bun:test'
import { type ExampleTask, fillIn } from '../../examples/demo/graph.ts'
import { graphProgress } from '../../examples/demo/progress.ts'
import { summaryOf } from '../../examples/demo/results.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'

const START = Date.parse('2030-01-01T00:00:00.000Z')
const at = (ms: number) => new Date(START + ms).toISOString()

const record = (more: Partial<TaskRecord>): TaskRecord => ({
  id: 'a',
  type: 'os',
  execution_category: 'os',
  retry: 0,
  graph_id: 'g',
  status: 'pending',
  created_at: at(0),
  updated_at: at(0),
  ...more,
})

const example = (annotations: Partial<ExampleTask['annotations']> = {}): ExampleTask => ({
  id: 'a',
  annotations: { title: 'Does it', expect: 'success', ...annotations },
})

const progressOf = (more: Partial<TaskRecord>, annotations: Partial<ExampleTask['annotations']> = {}) =>
  graphProgress([example(annotations)], [record(more)], START + 500).tasks[0]!

describe('progress', () => {
  test('counts time from when the graph was accepted', () => {
    const times = { started_at: at(100), finished_at: at(300) }
    const { nowMs, tasks } = graphProgress(
      [example()],
      [record({ status: 'success', attempt: 1, ...times })],
      START + 500,
    )
    expect(nowMs).toBe(500)
    expect(tasks).toEqual([
      {
        id: 'a',
        title: 'Does it',
        phase: 'success',
        attempt: 1,
        reason: '',
        isSurprise: false,
        startMs: 100,
        endMs: 300,
      },
    ])
  })

  test('a task without a record waits', () => {
    expect(graphProgress([example()], [], START).tasks[0]!.phase).toBe('waiting')
  })

  test.each([
    [{ status: 'pending' }, 'waiting'],
    [{ status: 'running', run_status: 'running' }, 'running'],
    [{ status: 'running', run_status: 'accepted' }, 'retrying'],
    [{ status: 'cancelling' }, 'running'],
    [{ status: 'failed' }, 'failed'],
    [{ status: 'skipped' }, 'skipped'],
  ] as const)('%o is %s', (more, phase) => {
    expect(progressOf(more).phase).toBe(phase)
  })

  test.each([
    [{ status: 'success', attempt: 1 }, {}, false],
    [{ status: 'failed', attempt: 1 }, {}, true],
    [{ status: 'failed', attempt: 1 }, { expect: 'failed' }, false],
    [{ status: 'success', attempt: 1 }, { expect: 'failed' }, true],
    [{ status: 'skipped' }, { expect: 'skipped' }, false],
    [{ status: 'skipped' }, {}, true],
    [{ status: 'success', attempt: 2 }, { attempts: '2' }, false],
    [{ status: 'success', attempt: 1 }, { attempts: '2' }, true],
    [{ status: 'running', attempt: 1 }, { expect: 'failed' }, false],
  ] as const)('%o where %o is expected is a surprise: %p', (more, annotations, isSurprise) => {
    expect(progressOf(more, annotations).isSurprise).toBe(isSurprise)
  })
})

describe('what came of a task', () => {
  test.each([
    [{ error: 'command failed: exit status 1' }, 'command failed: exit status 1'],
    [{ result: { status_code: 200, body: '', bytes_written: 7 } }, '200, 7 bytes saved'],
    [{ result: { content: 'a\nb\n', size: 4 } }, '2 lines read'],
    [{ result: { stdout: 'one\n' } }, 'one'],
    [{ result: { stdout: 'one\n\ntwo  3\n' } }, '2 lines, the last: two 3'],
    [{ result: { stdout: 'a \x1b[2Jb\rc' } }, 'a b c'],
    [{ result: { stdout: '' }, input: { command: 'sort', args: ['-o', 'a', 'b'] } }, '$ sort -o a b'],
    [{}, ''],
  ] as const)('%o reads: %s', (more, text) => {
    expect(summaryOf(record(more))).toBe(text)
  })
})

describe('placeholders', () => {
  const placeholder = (name: string) => `\${${name}}`

  test('are replaced inside strings, whatever their value contains', () => {
    const values = { WORK: '/tmp/a "b"\\c', FILES: 'http://x' }
    const [work, files] = [placeholder('WORK'), placeholder('FILES')]
    const others = `$HOME ${placeholder('not')}`
    const filled = JSON.parse(fillIn(JSON.stringify([`${work}/f`, `${files}/${files}`, others]), values))
    expect(filled).toEqual(['/tmp/a "b"\\c/f', 'http://x/http://x', others])
  })

  test('without a value are an error that names them', () => {
    expect(() => fillIn(JSON.stringify([placeholder('OTHER')]), {})).toThrow(placeholder('OTHER'))
  })
})
