/** Usage errors: one line, without passwords. */
import { expect, test } from 'bun:test'
import { UsageError } from '../../../shared/contract/errors.ts'

test.each([
  ['unknown flag ---x=postgres://app:secret@h/d', 'unknown flag ---x=postgres://app:***@h/d'],
  ['a https://u:se@cret@h/x and b://u:two@h', 'a https://u:***@h/x and b://u:***@h'],
  ['see http://127.0.0.1:8080/x or a@b', 'see http://127.0.0.1:8080/x or a@b'],
  ['two\nlines', String.raw`two\nlines`],
])('%j', (message, expected) => {
  expect(new UsageError(message).message).toBe(expected)
})
