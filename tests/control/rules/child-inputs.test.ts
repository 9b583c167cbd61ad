/** Goal: the inputs of children are never said to store more than they will. */
import { describe, expect, test } from 'bun:test'
import { ChildInputs } from '../../../control/rules/child-inputs.ts'
import type { ValidTask } from '../../../control/rules/validate.ts'
import { runSync } from '../../../shared/process/steps.ts'

const KIB = 1024
const text = (characters: number) => 'x'.repeat(characters)
const bytes = (params: unknown, list: readonly unknown[], ofGraph = {}) =>
  runSync(new ChildInputs(ofGraph).bytes({ params } as unknown as ValidTask, list))

describe('the inputs of children', () => {
  test('have the parameters, and each element as often as it is used whole', () => {
    const list = [text(10), text(20), 7]
    expect(bytes({ a: { $param: 'p' }, b: 1 }, list, { p: text(100) })).toBe(3 * 102)
    expect(bytes([{ $item: '' }, { $item: '' }, { $index: true }], list)).toBe(2 * (12 + 22 + 4))
    expect(bytes([{ $item: '', as: 'text' }, { $item: '/x' }], list)).toBe(0)
  })

  test('count where the record keeps them itself, which it does not for a large one', () => {
    const p = text(60 * KIB)
    expect(bytes({ $param: 'p' }, [1, 2], { p })).toBe(2 * (60 * KIB + 2))
    expect(bytes([{ $param: 'p' }, { $param: 'p' }], [1, 2], { p })).toBe(0)
    expect(bytes([{ $param: 'p' }, text(5 * KIB)], [1, 2], { p })).toBe(0)
    expect(bytes({ $item: '' }, [text(70 * KIB), text(60 * KIB)])).toBe(60 * KIB + 2)
    expect(bytes([{ $item: '' }, { $item: '/x' }], [text(30 * KIB), text(40 * KIB)])).toBe(30 * KIB + 2)
  })

  test('are not certain to be small with values that are not known', () => {
    const p = text(60 * KIB)
    expect(bytes([{ $param: 'p' }, { $from: 'other' }], [1, 2], { p })).toBe(0)
    expect(bytes([{ $param: 'p' }, { $item: '', as: 'json' }], [1, 2], { p })).toBe(0)
  })

  test('have as many characters as are counted where they are kept', () => {
    // As JSON, numbers have up to 24 characters, and a line break two.
    expect(bytes({ $item: '' }, [-1.7976931348623157e308, '\n', 'ü'])).toBe(4 + 3 + 3)
  })
})
