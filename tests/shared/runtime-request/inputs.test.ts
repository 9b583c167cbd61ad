/** Goal: no accepted input leads out of a workspace or into another input. Method: random paths. The texts: contract tests. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { RequestFault } from '../../../shared/runtime-request/fault.ts'
import { namesOfFile, validInputs } from '../../../shared/runtime-request/inputs.ts'

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
        for (const text of [path, input.file]) {
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

test('what is accepted is accepted again, without the fields of a status', () => {
  const given = { a: { task_id: 'other', file: 'x', sha256: 'f'.repeat(64), bytes: 1, files: 1 } }
  const valid = accepted(given)
  expect(valid).toEqual({ a: { task_id: 'other', file: 'x', sha256: 'f'.repeat(64) } })
  expect(accepted(valid)).toEqual(valid)
})
