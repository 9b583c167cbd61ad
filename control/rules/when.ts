/**
 * Conditions: `"when": {"$from": id, "path": pointer, "equals": value}` lets a task run only if a value of an ended
 * task passes a test. Pure.
 *
 * The first part is a reference (`references.ts`). The second part is exactly one test: `equals`, `not` and `in`
 * compare JSON values, `matches` compares a text with a glob.
 */

import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { didYouMean, quoted } from '../../shared/request/unknown-names.ts'
import { MAX_GLOB_CHARACTERS, matchesGlob } from '../../shared/text/glob.ts'
import type { JsonObject } from '../../shared/text/json.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { isWithinDepth } from '../json/depth.ts'
import { pointerFault } from '../json/json-pointer.ts'
import { findPlaceholders } from './placeholders.ts'
import { REFERENCE_FIELDS, type Reference, referenceIn } from './references.ts'

const TESTS = ['equals', 'not', 'in', 'matches'] as const

type Test =
  | { readonly kind: 'equals' | 'not'; readonly operand: unknown }
  | { readonly kind: 'in'; readonly operand: readonly unknown[] }
  | { readonly kind: 'matches'; readonly operand: string }

export interface When {
  readonly reference: Reference
  readonly test: Test
}

const FIELDS: readonly string[] = [...REFERENCE_FIELDS, ...TESTS]

/** Names of the tests in other systems. */
const SYNONYMS: Synonyms = {
  eq: 'equals',
  is: 'equals',
  ne: 'not',
  neq: 'not',
  not_equal: 'not',
  not_equals: 'not',
  is_not: 'not',
  one_of: 'in',
  any_of: 'in',
  glob: 'matches',
  like: 'matches',
  pattern: 'matches',
}

/** Parses the field `when` of a task. Returns the fault if it is invalid. */
export function whenIn(object: Readonly<JsonObject>): When | string {
  const other = Object.keys(object).find((name) => !FIELDS.includes(name))
  if (other !== undefined)
    return `when: unknown field ${quoted(other)}${didYouMean(nearestName(other, FIELDS, SYNONYMS))}`
  const reference = referenceIn(object)
  if (typeof reference === 'string') return `when.${reference}`
  const test = testIn('when', object)
  return typeof test === 'string' ? test : { reference, test }
}

/** What a value must be, at a JSON Pointer in an answer. */
export interface Expectation {
  readonly path: string
  readonly test: Test
}

/** Parses the field `expect` of a wait. `path` is the default. Returns the fault if it is invalid. */
export function expectationIn(object: Readonly<JsonObject>, path: string): Expectation | string {
  const names = ['path', ...TESTS]
  const other = Object.keys(object).find((name) => !names.includes(name))
  if (other !== undefined) {
    return `expect: unknown field ${quoted(other)}${didYouMean(nearestName(other, names, SYNONYMS))}`
  }
  const at = object.path ?? path
  if (typeof at !== 'string') return 'expect.path: expected a JSON Pointer, which begins with "/"'
  const fault = pointerFault(at)
  if (fault !== undefined) return `expect.path: ${fault}`
  const test = testIn('expect', object)
  return typeof test === 'string' ? test : { path: at, test }
}

/** The only test in `object`, which is the value of `field`. Returns the fault if there is none, or several. */
function testIn(field: string, object: Readonly<JsonObject>): Test | string {
  // Null is a value to compare with.
  const [kind, ...more] = TESTS.filter((name) => Object.hasOwn(object, name))
  if (kind === undefined || more.length > 0) return `${field}: expected exactly one of ${TESTS.join(', ')}`
  const test = testOf(kind, object[kind])
  return typeof test === 'string' ? `${field}.${kind}: ${test}` : test
}

/**
 * The field `when` of a stored task. Earlier versions accepted conditions of any depth, and those that are too deep
 * cannot be written again. Such a condition loses its test, so the task fails.
 */
export const storedWhen = (when: Readonly<JsonObject>): Readonly<JsonObject> =>
  isWithinDepth(when) ? when : { $from: when.$from }

/** The fault of the value that a condition compares with. The value may be as large as a graph. */
export function* operandFault({ test: { kind, operand } }: When): Steps<string | undefined> {
  const { places, faults } = yield* findPlaceholders(operand)
  return places.length + faults.length > 0 ? `when.${kind}: expected a value without placeholders` : undefined
}

function testOf(kind: (typeof TESTS)[number], operand: unknown): Test | string {
  if (kind === 'in') return Array.isArray(operand) ? { kind, operand } : 'expected a list of values'
  if (kind !== 'matches') return { kind, operand }
  if (typeof operand !== 'string') return 'expected a text with "*" and "?"'
  if (operand.length <= MAX_GLOB_CHARACTERS) return { kind, operand }
  return `expected at most ${MAX_GLOB_CHARACTERS} characters, got ${operand.length}`
}

/** Whether `value` passes `test`. Undefined if the test needs a text and `value` is not one. */
export function* passes({ kind, operand }: Test, value: unknown): Steps<boolean | undefined> {
  switch (kind) {
    case 'equals':
      return yield* areEqual(value, operand)
    case 'not':
      return !(yield* areEqual(value, operand))
    case 'in':
      for (let i = 0; i < operand.length; i++) {
        if (yield* areEqual(value, operand[i])) return true
        if (isYieldDue(i)) yield
      }
      return false
    case 'matches':
      return typeof value === 'string' ? yield* matchesGlob(value, operand) : undefined
  }
}

/** Whether two JSON values are equal. The order of names in objects does not count. No recursion. */
function* areEqual(a: unknown, b: unknown): Steps<boolean> {
  const pairs: [unknown, unknown][] = [[a, b]]
  let steps = 0
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    if (isYieldDue(steps++)) yield
    const [x, y] = pair
    if (x === y) continue
    if (typeof x !== 'object' || typeof y !== 'object' || x === null || y === null) return false
    if (Array.isArray(x) !== Array.isArray(y)) return false
    if (Array.isArray(x) && Array.isArray(y)) {
      if (x.length !== y.length) return false
      for (let i = 0; i < x.length; i++) {
        pairs.push([x[i], y[i]])
        if (isYieldDue(steps++)) yield
      }
      continue
    }
    const names = Object.keys(x)
    if (names.length !== Object.keys(y).length) return false
    for (const name of names) {
      if (!Object.hasOwn(y, name)) return false
      pairs.push([(x as JsonObject)[name], (y as JsonObject)[name]])
      if (isYieldDue(steps++)) yield
    }
  }
  return true
}
