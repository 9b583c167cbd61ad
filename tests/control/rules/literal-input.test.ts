/**
 * Goal: a task with the literal form of an input gets that input, and the form is a graph that is accepted. Method: a table
 * of what looks like a placeholder, filled in as at the start of a task.
 */
import { expect, test } from 'bun:test'
import { literalInput } from '../../../control/rules/literal-input.ts'
import { fill, findPlaceholders } from '../../../control/rules/placeholders.ts'
import { runSync } from '../../../shared/process/steps.ts'

const env = { T: 'secret' }
const mistake = { $from: 'q', other: 1 }
const many = Array.from({ length: 10_001 }, () => ({ $param: 'p' }))

test.each<[string, unknown, unknown]>([
  ['no placeholder', { a: [{ b: 1 }] }, { a: [{ b: 1 }] }],
  ['a reference', { a: [{ $from: 'q' }], env }, { a: [{ $literal: { $from: 'q' } }], env }],
  ['a literal', { a: { $literal: 1 } }, { a: { $literal: { $literal: 1 } } }],
  ['the whole', { $param: 'p' }, { $literal: { $param: 'p' } }],
  [
    'a mistake',
    { a: [mistake], b: { $from: 'q' }, env },
    { a: { $literal: [mistake] }, b: { $literal: { $from: 'q' } }, env },
  ],
  ['a mistake as the whole', mistake, { $literal: mistake }],
  ['a mistake in a list', [mistake], { $literal: [mistake] }],
  ['more than a task may have', { many, env }, { many: { $literal: many }, env }],
  ['no container', 'text', 'text'],
  [
    'a name of the prototype',
    JSON.parse('{"__proto__":{"$from":1}}'),
    JSON.parse('{"__proto__":{"$literal":{"$from":1}}}'),
  ],
])('%s', (_, input, literal) => {
  const found = runSync(literalInput(input))
  expect(found).toEqual(literal)
  const { places, faults } = runSync(findPlaceholders(found))
  expect(faults).toEqual([])
  const values = places.map(({ placeholder }) => placeholder.kind === 'literal' && placeholder.value)
  expect(runSync(fill(found, places, values))).toEqual(input)
})
