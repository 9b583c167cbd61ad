/** What the record of an attempt says of its output, from results of all kinds. */
import { describe, expect, test } from 'bun:test'
import { ResultFile } from '../../../control/rules/result-file.ts'
import { attemptOutput, MAX_ATTEMPT_RECORDS, withAttempt } from '../../../control/task/attempt-record.ts'

const shell = { stdout: 'out\n', stderr: '', exit_code: 3, truncated: false, stdout_truncated: false }

describe('the output of an attempt', () => {
  test.each<[string, unknown, string | undefined, object]>([
    ['a shell task', shell, undefined, { exit_code: 3, tail: 'out' }],
    ['one that wrote to both streams', { ...shell, stderr: 'a\nb\n' }, undefined, { exit_code: 3, tail: 'a\nb' }],
    ['one whose stdout is cut', { ...shell, truncated: true, stdout_truncated: true }, undefined, { exit_code: 3 }],
    ['one whose executor has the end', { ...shell, stdout_truncated: true }, 'end\n', { exit_code: 3, tail: 'end' }],
    ['a skill', { output: 'x\ny', exit_code: 1, truncated: false }, undefined, { exit_code: 1, tail: 'x\ny' }],
    ['a skill whose output is cut', { output: 'x\ny', exit_code: 1, truncated: true }, undefined, { exit_code: 1 }],
    ['an http task', { status_code: 503, body: 'busy' }, undefined, { tail: 'busy' }],
    ['a runtime task that was killed', { stdout: '', stderr: '', exit_code: null }, undefined, {}],
    ['nothing', undefined, undefined, {}],
    ['no object', 'text', undefined, {}],
    ['other types', { exit_code: '3', stdout: 7, stderr: null }, undefined, {}],
    ['a result in a file', new ResultFile('1-0-1.json'), undefined, {}],
  ])('of %s', (_, result, tail, expected) => {
    expect(attemptOutput(result, tail)).toStrictEqual(expected)
  })
})

test('the last records are kept, one for each attempt', () => {
  let records = withAttempt(undefined, { attempt: 1 })
  for (let attempt = 2; attempt <= 25; attempt++) records = withAttempt(records, { attempt })
  expect(records.map(({ attempt }) => attempt)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
  expect(records).toHaveLength(MAX_ATTEMPT_RECORDS)
  expect(withAttempt(records, { attempt: 25, error: 'again' })).toBe(records)
})
