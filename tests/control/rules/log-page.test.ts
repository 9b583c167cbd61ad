/** Pages of a text: read one after the other they are the text. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { logTextOf, page, progressLines, streamsOf } from '../../../control/rules/log-page.ts'

describe('page', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 })

  test('following next_offset reads all of it, and no character is cut in two', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 10 }), (whole, limit) => {
        let read = ''
        let offset: number | undefined = 0
        for (let pages = 0; offset !== undefined; pages++) {
          expect(pages).toBeLessThanOrEqual(whole.length)
          const next: ReturnType<typeof page> = page(whole, offset, limit)
          expect(next.offset).toBe(offset)
          expect(next.text.isWellFormed()).toBe(whole.isWellFormed() || next.text.isWellFormed())
          expect(next.total_characters).toBe(whole.length)
          read += next.text
          offset = next.next_offset
        }
        expect(read).toBe(whole)
      }),
    )
  })

  test('well-formed text has well-formed pages, wherever they begin', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: -70, max: 70 }), fc.integer({ min: 1, max: 10 }), (whole, offset, limit) => {
        expect(page(whole, offset, limit).text.isWellFormed()).toBe(true)
      }),
    )
  })

  test.each([
    [0, 3, { offset: 0, text: 'abc', total_characters: 5, next_offset: 3 }],
    [3, 3, { offset: 3, text: 'de', total_characters: 5 }],
    [-2, 10, { offset: 3, text: 'de', total_characters: 5 }],
    [-9, 2, { offset: 0, text: 'ab', total_characters: 5, next_offset: 2 }],
    [9, 2, { offset: 5, text: '', total_characters: 5 }],
  ])('from %i, at most %i', (offset, limit, expected) => {
    expect(page('abcde', offset, limit)).toEqual(expected)
  })

  test('a character of two halves is one step at least', () => {
    expect(page('😀😀', 0, 1)).toEqual({ offset: 0, text: '😀', total_characters: 4, next_offset: 2 })
    expect(page('😀😀', 1, 2)).toEqual({ offset: 0, text: '😀', total_characters: 4, next_offset: 2 })
  })
})

describe('streamsOf', () => {
  test.each<[unknown, string[]]>([
    [undefined, []],
    [null, ['result']],
    ['text', ['result']],
    [{ stdout: 'a', stderr: 'b', exit_code: 0 }, ['stdout', 'stderr', 'result']],
    [{ stdout: '', stderr: 'b' }, ['stderr', 'stdout', 'result']],
    [{ stdout: '', stderr: '' }, ['stdout', 'stderr', 'result']],
    [{ output: 'a' }, ['output', 'result']],
    [{ status_code: 200, body: 'x' }, ['body', 'result']],
    [{ content: 'of a file', size: 9 }, ['content', 'result']],
    [{ content: [{ type: 'image', data: 'x' }] }, ['result']],
  ])('%j has %j', (result, names) => {
    expect([...streamsOf(result).keys()]).toEqual(names)
  })

  test('the texts of an MCP tool are joined', () => {
    const content = [{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text', text: 'b' }]
    expect(streamsOf({ content }).get('content')).toBe('a\nb')
  })
})

test('what a task reported is a text between those of its result and all of it', () => {
  const progress = [{ timestamp: 't', message: 'half' }]
  expect([...streamsOf({ text: 'done' }, progress).keys()]).toEqual(['text', 'progress', 'result'])
  expect([...streamsOf(undefined, progress)]).toEqual([['progress', 'half\n']])
})

test('a report without a message is a line with its data', () => {
  const reports = [{ message: 'a' }, { data: { progress: 1 } }, { message: 'b', data: 2 }, {}]
  expect(progressLines(reports.map((report) => ({ timestamp: 't', ...report })))).toBe('a\n{"progress":1}\nb\nnull\n')
})

describe('logTextOf', () => {
  test.each<[unknown, string, string]>([
    [undefined, '', ''],
    [{ stdout: 'a', stderr: 'b', exit_code: 0 }, 'a', 'b'],
    [{ stdout: '', stderr: 'b' }, '', 'b'],
    [{ output: 'both' }, 'both', ''],
    [{ body: 'page', status_code: 200 }, 'page', ''],
    [{ content: [{ type: 'text', text: 'said' }] }, 'said', ''],
    [{ ok: true }, '{"ok":true}\n', ''],
    [null, 'null\n', ''],
  ])('%j', (result, stdout, stderr) => {
    expect([logTextOf(result, 'stdout').text, logTextOf(result, 'stderr').text]).toEqual([stdout, stderr])
  })

  test.each<[object, boolean, boolean]>([
    [{ stdout: 'a', stderr: 'b', truncated: true, stdout_truncated: false, stderr_truncated: true }, false, true],
    [{ output: 'a', truncated: true }, true, false],
    [{ output: 'a', truncated: false }, false, false],
  ])('%j says what was cut', (result, stdout, stderr) => {
    expect([logTextOf(result, 'stdout').isTruncated, logTextOf(result, 'stderr').isTruncated]).toEqual([stdout, stderr])
  })
})
