/** Goal: file references are found only where they mean something, and have the value of the runtime service. Method: tables. */
import { describe, expect, test } from 'bun:test'
import { isInputPath, MISPLACED_FILE, withoutInputs } from '../../../control/rules/file-references.ts'
import { findPlaceholders, placeholderIn } from '../../../control/rules/placeholders.ts'
import { referencedValue } from '../../../control/rules/references.ts'
import { runSync } from '../../../shared/process/steps.ts'

const FILE = { $from: 'build', file: 'dist/app.tar' }
const REFERENCE = { id: 'build', path: '/result', file: 'dist/app.tar' }

test.each([
  [FILE, { kind: 'reference', reference: REFERENCE }],
  [
    { ...FILE, file: '.' },
    { kind: 'reference', reference: { ...REFERENCE, file: '.' } },
  ],
  [
    { ...FILE, file: { $item: '/name' } },
    { kind: 'reference', reference: { ...REFERENCE, file: { kind: 'item', path: '/name' } } },
  ],
  [
    { ...FILE, file: { $index: true, as: 'text' } },
    { kind: 'reference', reference: { ...REFERENCE, file: { kind: 'index', as: 'text' } } },
  ],
  [{ ...FILE, file: { $item: 'x' } }, 'file: $item: expected a JSON Pointer, which begins with "/"'],
  [{ ...FILE, file: { $index: 1 } }, 'file: $index: expected true'],
  [{ ...FILE, file: { $item: '', x: 1 } }, 'file: expected the path of a file in the workspace of that task'],
  [{ ...FILE, file: 'a/../b' }, 'file cannot contain parent traversal'],
  [{ ...FILE, file: '/a' }, 'file must be relative to the workspace'],
  [{ ...FILE, file: 'a\0' }, 'file cannot contain NUL characters'],
  [{ ...FILE, file: 'a/'.repeat(600) }, 'file has 1199 bytes (at most 1024)'],
  [{ ...FILE, file: null }, 'file: expected the path of a file in the workspace of that task'],
  [{ ...FILE, $from: 1 }, '$from: expected the id of a task'],
  [{ ...FILE, default: 1 }, 'unknown field "default" beside "$from"'],
  [{ ...FILE, as: 'text' }, 'unknown field "as" beside "$from"'],
])('%j', (object, expected) => {
  expect(placeholderIn(object)).toEqual(expected as ReturnType<typeof placeholderIn>)
})

describe('a file reference stands', () => {
  test.each([
    [{ inputs: { a: FILE } }, true],
    [{ inputs: { __proto__x: FILE } }, true],
    [{ inputs: FILE }, false],
    [{ inputs: [FILE] }, true], // the runtime service refuses the list
    [{ inputs: { a: { file: FILE } } }, false],
    [{ args: [FILE] }, false],
    [FILE, false],
    [{ x: { inputs: { a: FILE } } }, false],
  ])('in %j: %p', (params, isRight) => {
    const { places, faults } = runSync(findPlaceholders(params))
    expect([places.length, faults.map(({ text }) => text)]).toEqual(isRight ? [1, []] : [0, [MISPLACED_FILE]])
  })

  test('below inputs alone', () => {
    expect([isInputPath(['inputs', 'a']), isInputPath(['input', 'a']), isInputPath(['inputs'])]).toEqual([
      true,
      false,
      false,
    ])
  })
})

test('the value names the other task as the runtime service does', () => {
  const value = (record: object) => runSync(referencedValue(record, REFERENCE, 1))
  expect(value({ result: { task_id: 'build-g1-2' } })).toEqual({
    value: { task_id: 'build-g1-2', file: 'dist/app.tar' },
    bytes: 48,
  })
  expect(value({ result: { task_id: 'x', placed_on: 'b' } })).toMatchObject({ value: { runtime: 'b' } })
  expect(value({ status: 'skipped' })).toEqual({
    fault: 'task build has no files: it did not run in the runtime service',
  })
})

test('the value for a task with children is a list, and a child without files is named', () => {
  const value = (result: unknown) => runSync(referencedValue({ result }, REFERENCE, 1))
  const { file } = REFERENCE
  expect(value([{ task_id: 'x' }, { task_id: 'y', placed_on: 'b' }])).toEqual({
    value: [
      { task_id: 'x', file },
      { task_id: 'y', file, runtime: 'b' },
    ],
    bytes: 78,
  })
  expect(value([])).toEqual({ value: [], bytes: 0 })
  for (const none of [null, undefined, {}]) {
    expect(value([{ task_id: 'x' }, none])).toEqual({
      fault: 'task build[1] has no files: it did not run in the runtime service',
    })
  }
})

test('parameters without inputs are otherwise the same', () => {
  expect(withoutInputs({ program: 'ls', inputs: { a: FILE } })).toEqual({ program: 'ls' })
})
