/** Goal: no accepted input leads out of a workspace or into another input. Method: random paths. The texts: contract tests. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { RequestFault } from '../../../shared/request/fault.ts'
import { namesOfFile, validInputs } from '../../../shared/request/inputs.ts'

const HASH = 'f'.repeat(64)

const part = fc.constantFrom('a', 'b', '.', '..', '', '/', '__proto__', '\0', 'x'.repeat(256))
const path = fc.array(part, { maxLength: 5 }).map((parts) => parts.join('/'))

function accepted(given: Parameters<typeof validInputs>[0]) {
  try {
    return validInputs(given, 'self', () => true)
  } catch (error) {
    expect(error).toBeInstanceOf(RequestFault)
    return {}
  }
}

test('accepted paths stay in their workspaces and apart', () => {
  fc.assert(
    fc.property(fc.array(path, { maxLength: 4 }), path, (paths, file) => {
      const given = Object.fromEntries(paths.map((path) => [path, { task_id: 'other', file }]))
      const places = Object.entries(accepted(given)).map(([path, input]) => {
        for (const text of [path, 'file' in input ? input.file : '']) {
          expect(text.startsWith('/')).toBe(false)
          expect(namesOfFile(text).some((name) => name === '..' || name.includes('\0') || name.length > 255)).toBe(
            false,
          )
        }
        return namesOfFile(path).join('/')
      })
      expect(places).not.toContain('')
      for (const [i, a] of places.entries()) {
        for (const b of places.slice(i + 1))
          expect(`${a}/`.startsWith(`${b}/`) || `${b}/`.startsWith(`${a}/`)).toBe(false)
      }
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['neither', {}, 'inputs.a: expected object with task_id and file, or with content'],
  ['no file', { task_id: 'other' }, 'inputs.a: expected object with task_id and file'],
  ['both', { staged: HASH, file: 'x' }, 'inputs.a.staged excludes task_id and file'],
  ['no hash', { staged: 'x' }, 'inputs.a.staged must have 64 hexadecimal digits, in lower case'],
  ['a path', { staged: `../${HASH.slice(3)}` }, 'inputs.a.staged must have 64 hexadecimal digits, in lower case'],
  ['content and a task', { content: '', task_id: 'other' }, 'inputs.a.content excludes task_id, file and staged'],
  ['half a character', { content: '\ud800' }, 'inputs.a.content is not valid Unicode'],
])('an input with %s is refused', (_, input, fault) => {
  expect(() => validInputs({ a: input }, 'self', () => true)).toThrow(fault)
})

test('a staged bundle is accepted, with the hash of its content', () => {
  const given = { a: { staged: HASH, sha256: HASH, bytes: 1 } }
  expect(accepted(given)).toEqual({ a: { staged: HASH, sha256: HASH } })
})

test.each(['', 'a\0b€'])('a content is accepted: %j', (content) => {
  const valid = accepted({ a: { content, sha256: HASH, bytes: 1 } })
  expect(valid).toEqual({ a: { content, sha256: HASH } })
  expect(accepted(valid)).toEqual(valid)
})

test('what is accepted is accepted again, without the fields of a status', () => {
  const given = { a: { task_id: 'other', file: 'x', sha256: 'f'.repeat(64), bytes: 1, files: 1 } }
  const valid = accepted(given)
  expect(valid).toEqual({ a: { task_id: 'other', file: 'x', sha256: 'f'.repeat(64) } })
  expect(accepted(valid)).toEqual(valid)
})
