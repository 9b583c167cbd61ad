/** Goal: query parameters are known by their names, however they are written. Method: comparison with URLSearchParams. */
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import fc from 'fast-check'
import { checkQuery } from '../../../shared/http/query-parameters.ts'

const known = {
  limit: Type.Optional(Type.String()),
  status: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
}

const refused = (query: string): string | undefined => {
  try {
    checkQuery(`http://127.0.0.1/tasks${query}`, known)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

describe('a query', () => {
  test.each(['', '?', '?limit=1', '?limit', '?&&limit=1&', '?status=a&status=b', '?limit=a=b', '?li%6Dit=1', '?x-1=2'])(
    '%s is accepted',
    (query) => expect(refused(query)).toBeUndefined(),
  )

  test.each([
    ['?limit=1&limit=2', 'query parameter "limit" is given twice'],
    ['?limit=1&li%6dit=2', 'query parameter "limit" is given twice'],
    ['?limits=1', 'unknown query parameter "limits" (did you mean "limit"?)'],
    ['?=1', 'unknown query parameter ""'],
    ['?a%20b=1', 'unknown query parameter "a b"'],
    ['?a+b=1', 'unknown query parameter "a b"'],
  ])('%s is refused', (query, message) => expect(refused(query)).toStartWith(message))

  test('has the names that URLSearchParams finds', () => {
    const piece = fc.constantFrom('limit', 'status', '=', '&', '%', '%6c', '+', 'é', '?', '/', 'x-', '')
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const query = pieces.join('')
        const names = [...new URLSearchParams(`?${query}`).keys()].filter((name) => !name.startsWith('x-'))
        const isKnown = names.every((name) => Object.hasOwn(known, name))
        const isGivenOnce = names.filter((name) => name === 'limit').length <= 1
        expect(refused(`?${query}`) === undefined).toBe(isKnown && isGivenOnce)
      }),
    )
  })
})
