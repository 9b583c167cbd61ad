/** Goal: YAML means what YAML 1.2 says, and what JSON cannot hold is refused with its place, in little time. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { jsonFault } from '../../../shared/graph-file/json-fault.ts'
import { jsonOfYaml } from '../../../shared/graph-file/yaml.ts'

const read = async (text: string) => JSON.parse(await jsonOfYaml(text, 'g.yaml'))
const refusal = async (text: string) => {
  const error = await jsonOfYaml(text, 'g.yaml').catch((thrown: unknown) => thrown)
  return error instanceof Error ? error.message : `accepted: ${error}`
}

describe('a graph', () => {
  test('is the same as in JSON', async () => {
    const graph = { scope: 'graph', tasks: [{ id: 'a', type: 'shell', params: { args: ['x', 1, true, null] } }] }
    expect(await read(JSON.stringify(graph))).toEqual(graph)
    const text = `
# A comment.
scope: graph
tasks:
- id: a
  type: shell
  params: {args: [x, 1, true, null]}
`
    expect(await read(text)).toEqual(graph)
    expect(await read(text.replaceAll('\n', '\r\n'))).toEqual(graph)
    expect(await read(`\ufeff${text}`)).toEqual(graph)
  })

  test('has blocks of text, and parts that are used again', async () => {
    const text = 'a: &shared {retry: 1}\nb: {<<: *shared, id: x}\nc: |\n  echo "$1"\n  exit 0\nd: >-\n  one\n  two\n'
    expect(await read(text)).toEqual({
      a: { retry: 1 },
      b: { retry: 1, id: 'x' },
      c: 'echo "$1"\nexit 0\n',
      d: 'one two',
    })
  })

  test.each([
    ['yes', 'yes'],
    ['no', 'no'],
    ['on', 'on'],
    ['off', 'off'],
    ['2001-12-14', '2001-12-14'],
    ['22:22', '22:22'],
    ['1_000', '1_000'],
    ['true', true],
    ['~', null],
    ['0o17', 15],
    ['1.10', 1.1],
    ['"1.10"', '1.10'],
    ['9007199254740991', 9007199254740991],
  ])('%s is %j', async (text, value) => {
    expect(await read(`a: ${text}`)).toEqual({ a: value })
    expect(await read(`${text}: a`)).toEqual({ [String(value)]: 'a' })
  })

  test('a hostile key is a key', async () => {
    const json = await jsonOfYaml('__proto__: {polluted: 1}\nconstructor: 2', 'g.yaml')
    expect(json).toBe('{"__proto__":{"polluted":1},"constructor":2}')
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })

  test('any JSON is YAML', async () => {
    const isPlain = (value: unknown) => jsonFault(value, 1e6) === undefined
    const keys = fc.string({ unit: 'grapheme' })
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null), tie('object')),
      object: fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    }))
    await fc.assert(
      fc.asyncProperty(value.filter(isPlain), async (inner) => {
        expect(await read(JSON.stringify({ tasks: inner }))).toEqual({ tasks: inner } as object)
      }),
    )
  })
})

describe('refused', () => {
  test.each([
    ['tasks:\n  - id: a\n    type: noop\n   bad: indent\n', 'g.yaml: line 4, column 4: invalid YAML: Unexpected token'],
    ['a:\n\t- b', /^g\.yaml: line 2, column 2: invalid YAML: Tab characters/],
    ['a: 1\nb: *nope', 'g.yaml: line 2, column 4: invalid YAML: Unresolved alias'],
    ['a: "unclosed', /^g\.yaml: line 1, column \d+: invalid YAML: Unexpected EOF$/],
    [
      'tasks:\n- id: a\n  params: {}\n  params: {}',
      'g.yaml: line 4: the key "params" is given twice (first on line 3)',
    ],
    ['', 'g.yaml holds nothing: expected an object with tasks'],
    ['# only a comment', 'g.yaml holds nothing: expected an object with tasks'],
    ['hello', 'g.yaml is a string: expected an object with tasks'],
    ['- id: a', 'g.yaml is a list, or several documents: expected one object with tasks'],
    ['a: 1\n---\nb: 2', 'g.yaml is a list, or several documents: expected one object with tasks'],
    ['a: &x\n  b: *x', 'g.yaml: values are nested more than 1000 deep, or an alias contains itself'],
    [
      'tasks:\n- timeout: 12345678901234567890',
      'g.yaml: tasks[0].timeout: 12345678901234567000 is too large to be exact: write it as text, in quotes',
    ],
    ['tasks:\n- params: {x: .inf}', 'g.yaml: tasks[0].params.x: Infinity is no number of JSON'],
    ['x: 1e400', 'g.yaml: x: Infinity is no number of JSON'],
    ['x: .nan', 'g.yaml: x: NaN is no number of JSON'],
  ])('%j', async (text, message) => {
    const told = await refusal(text)
    if (typeof message === 'string') expect(told).toBe(message)
    else expect(told).toMatch(message)
  })

  test('values that are nested too deeply', async () => {
    for (const depth of [1_002, 100_000]) {
      expect(await refusal(`a: ${'['.repeat(depth)}${']'.repeat(depth)}`)).toMatch(/^g\.yaml: values are nested/)
    }
  })

  test('aliases that expand without end', async () => {
    const laughs = (levels: number) =>
      Array.from({ length: levels }, (_, i) => `a${i}: &a${i} [${Array(10).fill(i === 0 ? 'x' : `*a${i - 1}`)}]`)
    expect(await refusal(laughs(12).join('\n'))).toMatch(/Excessive aliasing|its aliases expand/)
    const text = `a: &a "${'x'.repeat(1_000_000)}"\nb: [${Array(900).fill('*a')}]`
    expect(await refusal(text)).toMatch(/^g\.yaml: b\[\d+\]: its aliases expand to more than 268435456 bytes of JSON$/)
  })
})

test('the size of a value is counted before it is written as JSON', () => {
  const shared = ['abcdefgh']
  expect(jsonFault({ tasks: [shared, shared] }, 1_000)).toBeUndefined()
  expect(jsonFault({ tasks: Array(100).fill(shared) }, 1_000)).toContain('its aliases expand to more than 1000 bytes')
})
