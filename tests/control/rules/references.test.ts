/** Goal: a reference is taken as documented, and what is wrong with one is said in words. Method: tables. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { pointerValue } from '../../../control/json/json-pointer.ts'
import { referencedValue, referenceIn } from '../../../control/rules/references.ts'
import { runSync } from '../../../shared/process/steps.ts'

const record = {
  id: 'a',
  status: 'success',
  result: {
    text: 'one\ntwo\r\n\nfour\n',
    empty: '',
    json: '{"a":[1,null]}',
    bad: '{"a":',
    number: 7,
    infinite: '{"a":[1,-1e999]}',
    deep: '['.repeat(800),
    brackets: `["${'[{'.repeat(300)}\\\\","\\"[",1e308]`,
    none: null,
    list: [1, { 'a/b': 'deep', 'm~n': 2 }],
    children: [
      { stdout: '1\n2\n', all: [1] },
      { stdout: '{"a":3}', all: [], only: null },
    ],
    broken: [{ stdout: '1' }, null, { stdout: '{' }],
    nothing: [],
    stars: { '*': { stdout: 'member' } },
  },
}

const standsFor = (object: Record<string, unknown>, maxBytes = 4_000) => {
  const reference = referenceIn({ $from: 'a', ...object })
  if (typeof reference === 'string') throw new Error(reference)
  const found = runSync(referencedValue(record, reference, maxBytes))
  return 'fault' in found ? found.fault : { value: found.value }
}

describe('a reference stands for', () => {
  test.each<[string, Record<string, unknown>, unknown]>([
    ['the result without a path', {}, record.result],
    ['the whole record with an empty path', { path: '' }, record],
    ['a null path means none', { path: null, as: null }, record.result],
    ['a text', { path: '/result/text' }, record.result.text],
    ['a number', { path: '/result/number' }, 7],
    ['a null', { path: '/result/none' }, null],
    ['a null, though there is a default', { path: '/result/none', default: 1 }, null],
    ['an element, by names with escapes', { path: '/result/list/1/a~1b' }, 'deep'],
    ['another', { path: '/result/list/1/m~0n' }, 2],
    ['the default where there is nothing', { path: '/result/other', default: { a: 1 } }, { a: 1 }],
    ['a default that is null', { path: '/result/other', default: null }, null],
    ['a default as it is, whatever the form', { path: '/result/other', default: 1, as: 'lines' }, 1],
    ['a text as text', { path: '/result/text', as: 'text' }, record.result.text],
    ['a number as text', { path: '/result/number', as: 'text' }, '7'],
    ['a null as text', { path: '/result/none', as: 'text' }, 'null'],
    ['a list as text', { path: '/result/list', as: 'text' }, '[1,{"a/b":"deep","m~n":2}]'],
    ['text as JSON', { path: '/result/json', as: 'json' }, { a: [1, null] }],
    [
      'text as JSON, with brackets in its texts',
      { path: '/result/brackets', as: 'json' },
      [`${'[{'.repeat(300)}\\`, '"[', 1e308],
    ],
    ['a value as JSON', { path: '/result/list', as: 'json' }, record.result.list],
    ['lines', { path: '/result/text', as: 'lines' }, ['one', 'two', '', 'four']],
    ['a value of each element', { path: '/result/children/*/stdout' }, ['1\n2\n', '{"a":3}']],
    ['each element', { path: '/result/children/*' }, record.result.children],
    ['each as JSON', { path: '/result/children/*/all', as: 'json' }, [[1], []]],
    ['each as lines', { path: '/result/children/*/stdout', as: 'lines' }, [['1', '2'], ['{"a":3}']]],
    ['each as text', { path: '/result/children/*/all', as: 'text' }, ['[1]', '[]']],
    ['a place in the arrays of each', { path: '/result/children/*/all/0', default: 9 }, [1, 9]],
    ['a null that is there, and a default', { path: '/result/children/*/only', default: 1 }, [1, null]],
    ['no element', { path: '/result/nothing/*/stdout' }, []],
    ['the default where there is no array', { path: '/result/none_such/*/stdout', default: 'none' }, 'none'],
    ['a member with the name *', { path: '/result/stars/*/stdout' }, 'member'],
    ['no lines', { path: '/result/empty', as: 'lines' }, []],
  ])('%s', (_, object, value) => {
    expect(standsFor(object)).toEqual({ value })
  })
})

describe('a reference fails with', () => {
  test.each<[Record<string, unknown>, string]>([
    [{ path: '/result/other' }, 'task a has no /result/other, and there is no default'],
    [{ path: '/result/constructor' }, 'task a has no /result/constructor, and there is no default'],
    [{ path: '/result/list/length' }, 'task a has no /result/list/length, and there is no default'],
    [{ path: '/result/bad', as: 'json' }, '/result/bad of task a is not JSON: Unexpected EOF'],
    [{ path: '/result/infinite', as: 'json' }, '/result/infinite of task a has a number that is too large'],
    [{ path: '/result/deep', as: 'json' }, '/result/deep of task a is nested deeper than 200 levels'],
    [{ path: '/result/list', as: 'lines' }, '/result/list of task a is no text with lines: it is an array'],
    [{ path: '/result/number', as: 'lines' }, '/result/number of task a is no text with lines: it is a number'],
    [{ path: '/result/broken/*/stdout' }, 'task a has no /result/broken/1/stdout, and there is no default'],
    [{ path: '/result/other/*/stdout' }, 'task a has no /result/other/*/stdout, and there is no default'],
    [
      { path: '/result/broken/*/stdout', as: 'json', default: 0 },
      "/result/broken/2/stdout of task a is not JSON: Expected '}'",
    ],
    [
      { path: '/result/text/*/stdout', default: 1 },
      '/result/text of task a is no array, which "*" in a path crosses: it is a string',
    ],
    [{ path: '/result/none/*' }, '/result/none of task a is no array, which "*" in a path crosses: it is null'],
    [{ path: '/*' }, 'the record of task a is no array, which "*" in a path crosses: it is an object'],
    [{ path: '/result/none', as: 'lines' }, '/result/none of task a is no text with lines: it is null'],
  ])('%j', (object, fault) => {
    expect(standsFor(object)).toBe(fault)
  })

  test.each(['', '/result', '/result/text', '/result/list'])('more bytes than the limit at %j', (path) => {
    const place = path === '' ? 'the record' : path
    const tooLarge = `${place} of task a has more than 10 bytes as JSON (the limit is --max-reference-bytes)`
    expect(standsFor({ path }, 10)).toBe(tooLarge)
    expect(standsFor({ path, as: 'text' }, 10)).toBe(tooLarge)
  })

  test.each([{}, { default: 'x'.repeat(40) }])('the limit counts all that * gathers, also %j', (more) => {
    const reference = { path: `/result/children/*/${'default' in more ? 'other' : 'stdout'}`, ...more }
    const gathered = standsFor(reference) as { value: unknown }
    const bytes = JSON.stringify(gathered.value).length
    expect(standsFor(reference, bytes)).toEqual(gathered)
    expect(standsFor(reference, bytes - 1)).toBe(
      `${reference.path} of task a has more than ${bytes - 1} bytes as JSON (the limit is --max-reference-bytes)`,
    )
  })

  test('the limit counts bytes of JSON, in the form that was asked for', () => {
    const bytes = JSON.stringify(record.result.text).length
    expect(standsFor({ path: '/result/text' }, bytes)).toEqual({ value: record.result.text })
    expect(standsFor({ path: '/result/text' }, bytes - 1)).toContain('has more than')
    expect(standsFor({ path: '/result/text', as: 'lines' }, 23)).toEqual({ value: ['one', 'two', '', 'four'] })
    expect(standsFor({ path: '/result/text', as: 'lines' }, 22)).toContain('has more than')
  })
})

test.each<[Record<string, unknown>, string]>([
  [{ $from: 7 }, '$from: expected the id of a task'],
  [{ $from: '' }, '$from: expected the id of a task'],
  [{ $from: null }, '$from: expected the id of a task'],
  [{ path: 7 }, 'path: expected a JSON Pointer'],
  [{ path: 'result' }, 'path: expected a JSON Pointer, which begins with "/"'],
  [{ path: '/a~2' }, 'path: expected a JSON Pointer, with "~0" for "~" and "~1" for "/" in a name'],
  [{ path: `/${'a'.repeat(1_000)}` }, 'path: expected at most 1000 characters, got 1001'],
  [{ path: '/result/*/a/*' }, 'path: expected at most one "*"; let another task gather the inner arrays'],
  [{ path: '/*/*' }, 'path: expected at most one "*"; let another task gather the inner arrays'],
  [{ as: 'yaml' }, 'as: expected text, json, lines'],
])('%j is refused: %s', (object, fault) => {
  expect(referenceIn({ $from: 'a', ...object })).toBe(fault)
})

test('* gathers what the pointer with each index finds, for any array', () => {
  const name = fc.constantFrom('a', 'b', '0', '*x', '')
  const element = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.json(), fc.array(tie('value')), fc.dictionary(name, tie('value'))),
  })).value
  fc.assert(
    fc.property(fc.array(element), fc.array(name, { maxLength: 3 }), fc.boolean(), (list, names, hasDefault) => {
      const after = names.map((each) => `/${each}`).join('')
      const record = { result: { list } }
      const reference = referenceIn({ $from: 'a', path: `/result/list/*${after}`, ...(hasDefault && { default: 'd' }) })
      if (typeof reference === 'string') throw new Error(reference)
      const each = list.map((_, i) => pointerValue(record, `/result/list/${i}${after}`))
      const missing = each.findIndex(({ found }) => !found)
      const values = each.map((one) => (one.found ? one.value : 'd'))
      expect(runSync(referencedValue(record, reference, Number.POSITIVE_INFINITY))).toEqual(
        missing >= 0 && !hasDefault
          ? { fault: `task a has no /result/list/${missing}${after}, and there is no default` }
          : { value: values, bytes: Buffer.byteLength(JSON.stringify(values)) },
      )
    }),
  )
})
