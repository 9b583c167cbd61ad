/**
 * Goal: each key that a mapping has twice is found, and no other.
 * Method: examples in rows; random values in random styles, of which the parser says that they are YAML.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { placeInYaml, yamlKeyFault } from '../../../shared/graph-file/yaml-keys.ts'

const twice = (key: string, first: number) => `the key ${JSON.stringify(key)} is given twice (first on line ${first})`

describe('a key', () => {
  test.each<[string, string, number, number]>([
    ['a: 1\na: 2', 'a', 2, 1],
    ['a: 1\n"a": 2', 'a', 2, 1],
    ["'a': 1\na : 2", 'a', 2, 1],
    ['\ufeff---\na: 1\r\n\r\na: 2', 'a', 4, 2],
    ['t:\n  - id: a\n    id: b', 'id', 3, 2],
    ['t:\n- id: a\n  params: {}\n- id: b\n  params: {x: 1}\n  params: {y: 1}', 'params', 6, 5],
    ['a:\n- x\na:\n- y', 'a', 3, 1],
    ['x: {a: 1, a: 2}', 'a', 1, 1],
    ['x: {"a":1,"a":2}', 'a', 1, 1],
    ['x: {a: "}", b: \'{\', a: 1}', 'a', 1, 1],
    ['x: [{a: 1,\n  b: 2, # }\n  a: 3}]', 'a', 3, 1],
    ['x: &a {p: 1}\ny: *a\nx: 2', 'x', 3, 1],
    ['t:\n  - run: |\n      a: 1\n      a: 2\n    id: x\n    run: y', 'run', 6, 2],
    ['- - a: 1\n    b: 1\n    a: 1', 'a', 3, 1],
    ['a: "x\n  b: 1"\nc: 1\na: 1', 'a', 4, 1],
  ])('in %j is given twice', (text, key, line, first) => {
    Bun.YAML.parse(text)
    expect(yamlKeyFault(text)).toEqual({ line, message: twice(key, first) })
  })

  test.each([
    't:\n- id: a\n- id: b',
    't:\n  - id: a\n    x: {a: 1, b: {a: 2}}\n  - id: b',
    'x: [{a: 1}, {a: 2}, a: 1, a: 2]',
    's: |\n  a: 1\n\n  a: 2\nb: 1',
    '- |-\n  a: 1\n  a: 1\n- b',
    's: "x\n  a: 1\n  a: 2"\nb: 1',
    "s: foo\n  bar baz\n  it's\na: 1\nb: 2",
    "a:\n  it is\n  'quoted' and more\nb: 1",
    'a: http://x:80/y\nb: http://x:80/y',
    'a: x # c: d\nb: y # c: e',
    'a # c: 1\n',
    '<<: {a: 1}\n<<: {b: 1}',
    "x: 'it''s: a'\ny: 1",
    'x: {a#b: 1, a: 2}',
    'a: 1\n---\na: 1',
    '# a: 1\na: 1\n# a: 1',
    '? a\n: 1\n? b\n: 2',
    '',
  ])('in %j is given once', (text) => {
    Bun.YAML.parse(text)
    expect(yamlKeyFault(text)).toBeUndefined()
  })
})

test.each([
  ['x: 1\ny: !custom z', 2, '!custom'],
  ['x: {a: !bar 1}', 1, '!bar'],
  ['- !!int "7"', 1, '!!int'],
])('the tag in %j is not supported', (text, line, tag) => {
  expect(yamlKeyFault(text)).toEqual({ line, message: `the tag ${tag} is not supported` })
})

test.each(['x: !!str 1', 'x: "!no"', 'x: a !no', 'x: |\n  !no', 'x: [a!, "!b"]'])(
  '%j has no tag of its own',
  (text) => {
    expect(yamlKeyFault(text)).toBeUndefined()
  },
)

/** A mapping, with how it is written. */
interface Shape {
  readonly style: number
  readonly entries: readonly (readonly [key: string, value: Node])[]
}
type Node = string | Shape | readonly Node[]

const keys = fc.constantFrom('a', 'b', 'c', 'd e', 'f-g', 'h:i', 'j#k', '- l', '#m', 'no', "n'o", 'p"q')
const { node } = fc.letrec<{ node: Node; mapping: Shape }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('x', 'a: b', "it's", '{', '# no', 'two\nlines: 2\n', 'http://x:80/y', '', ' - a: b'),
    tie('mapping'),
    fc.array(tie('node'), { maxLength: 3 }),
  ),
  mapping: fc.record({
    style: fc.nat(2),
    entries: fc.uniqueArray(fc.tuple(keys, tie('node')), { selector: ([key]) => key, maxLength: 4 }),
  }),
}))

const isPlain = (key: string) => /^[a-z][a-z -]*$/.test(key)
const quoted = (text: string, style: number) =>
  style === 1 && !/\n/.test(text) ? `'${text.replaceAll("'", "''")}'` : JSON.stringify(text)
const isMapping = (value: Node): value is Shape => typeof value === 'object' && !Array.isArray(value)

/** Everything on one line. */
function flow(value: Node): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (!isMapping(value)) return `[${value.map(flow).join(', ')}]`
  const { entries, style } = value
  return `{${entries.map(([key, inner]) => `${isPlain(key) ? key : quoted(key, style)}: ${flow(inner)}`).join(', ')}}`
}

/** Lines; the first one is to follow a key or a dash. */
function block(value: Node, indent: string): string[] {
  if (typeof value === 'string') {
    if (/^[a-z].*\n$/s.test(value))
      return [
        ' |',
        ...value
          .trimEnd()
          .split('\n')
          .map((line) => `${indent}  ${line}`),
      ]
    return [` ${quoted(value, value.length % 2)}`]
  }
  if (isMapping(value) ? value.style === 2 || value.entries.length === 0 : value.length === 0)
    return [` ${flow(value)}`]
  if (!isMapping(value)) return ['', ...value.flatMap((inner) => item(inner, indent))]
  return ['', ...value.entries.flatMap(([key, inner]) => entry(key, inner, indent, value.style))]
}

function entry(key: string, inner: Node, indent: string, style: number): string[] {
  const [first, ...rest] = block(inner, `${indent}  `)
  return [`${indent}${isPlain(key) ? key : quoted(key, style)}:${first}`, ...rest]
}

/** A block mapping begins on the line of its dash. */
function item(inner: Node, indent: string): string[] {
  const [first, ...rest] = block(inner, `${indent}  `)
  if (first === '' && rest.length > 0) return [`${indent}- ${rest[0]!.trimStart()}`, ...rest.slice(1)]
  return [`${indent}-${first}`, ...rest]
}

const plainValue = (value: Node): unknown =>
  typeof value === 'string'
    ? value
    : isMapping(value)
      ? Object.fromEntries(value.entries.map(([key, inner]) => [key, plainValue(inner)]))
      : value.map(plainValue)

describe('the place of a value', () => {
  const text = `# graph
name: n
tasks:
- id: a
  depends_on: b
- {id: b,
   timeout: 30s}
-
  "id": c
  params:
    args:
      - one
      - two: 2
  script: |
    tasks:
      - id: x
  timeout: 30s
  flow: {a: [x, {b: 2}], "c": 3}
other: 1
`
  test.each<[(string | number)[], number, number]>([
    [['tasks'], 3, 7],
    [['tasks', 0, 'depends_on'], 5, 15],
    [['tasks', 1], 6, 3],
    [['tasks', 1, 'timeout'], 7, 13],
    [['tasks', 2, 'flow', 'a', 1, 'b'], 18, 21],
    [['tasks', 2, 'flow', 'a', 1, 'none'], 18, 13],
    [['tasks', 2, 'flow', 'c'], 18, 31],
    [['tasks', 2, 'id'], 9, 9],
    [['tasks', 2, 'params', 'args', 1, 'two'], 13, 14],
    [['tasks', 2, 'script'], 14, 11],
    [['tasks', 2, 'timeout'], 17, 12],
    [['other', 'deeper'], 19, 8],
  ])('%j is in line %d, column %d', (path, line, column) => {
    expect(placeInYaml(text, path)).toEqual({ line, column })
  })

  test.each<[(string | number)[], number, number]>([
    [['name'], 2, 1],
    [['tasks', 2, 'id'], 9, 3],
    [['tasks', 2, 'params', 'args', 1, 'two'], 13, 9],
    [['tasks', 1, 'timeout'], 7, 4],
    [['tasks', 2, 'flow', 'c'], 18, 26],
    [['tasks', 2, 'flow', 'none'], 18, 9],
  ])('the key of %j is in line %d, column %d', (path, line, column) => {
    expect(placeInYaml(text, path, 'key')).toEqual({ line, column })
  })

  test('is unknown for what is not there', () => {
    expect(placeInYaml(text, ['nope'])).toBeUndefined()
    expect(placeInYaml('? key\n: value', ['key'])).toBeUndefined()
  })
})

describe('random values', () => {
  test('without a key given twice have no fault, and with one have it', () => {
    fc.assert(
      fc.property(node, (value) => {
        const lines = ['top:', ...entry('x', value, '  ', 0)]
        const text = lines.join('\n')
        expect(Bun.YAML.parse(text)).toEqual({ top: { x: plainValue(value) } } as object)
        expect(yamlKeyFault(text)).toBeUndefined()
        const again = [...lines, '  x: again', 'y: 1'].join('\n')
        Bun.YAML.parse(again)
        expect(yamlKeyFault(again)).toEqual({ line: lines.length + 1, message: twice('x', 2) })
      }),
      { numRuns: 1_000 },
    )
  })
})
