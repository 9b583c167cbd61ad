/**
 * Goal: reading JSON in steps accepts and refuses exactly what `JSON.parse` does, and gives equal values.
 * Method: random documents, written with odd spaces, escapes and repeated names, then broken in random places.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseMembers, parseObjectWithArrays } from '../../../control/json/large-json.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { JsonSyntaxError, parseJson } from '../../../shared/text/json-bytes.ts'

function membersOf(bytes: Uint8Array): [key: string, value: unknown][] {
  const members: [string, unknown][] = []
  runSync(parseMembers(bytes, (key, value) => void members.push([key, value])))
  return members
}

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** `bytesPerParse` so small that guessed borders fall everywhere; undefined for that of the service. */
const readWithArray = (text: string, bytesPerParse?: number) =>
  runSync(
    parseObjectWithArrays(
      bytesOf(text),
      { tasks: true, a: { tasks: true, '': { '1': true } } },
      bytesPerParse === undefined ? {} : { bytesPerParse },
    ),
  )

/** The members as a reader of objects would see them: a repeated name counts by its last value. */
const readMembers = (text: string) => {
  const found: Record<string, unknown> = Object.create(null)
  for (const [key, value] of membersOf(bytesOf(text))) found[key] = value
  return found
}

type Outcome = { readonly value: string } | 'refused'

/** What comes of reading: the value in one comparable form, or that the text was refused. */
function outcomeOf(read: () => unknown): Outcome {
  try {
    return { value: JSON.stringify(read()) }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !(error instanceof JsonSyntaxError)) throw error
    return 'refused'
  }
}

function expectAsJsonParse(given: string): void {
  const text = given.toWellFormed() // bytes hold no half characters
  const expected = outcomeOf(() => JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text))
  for (const bytesPerParse of [undefined, 1, 6, 14]) {
    const outcome = outcomeOf(() => readWithArray(text, bytesPerParse))
    expect({ text, bytesPerParse, outcome }).toEqual({ text, bytesPerParse, outcome: expected })
  }
  expect({ text, outcome: outcomeOf(() => parseJson(bytesOf(text))) }).toEqual({ text, outcome: expected })
  const isObject = expected !== 'refused' && expected.value.startsWith('{')
  const members = isObject ? expected : 'refused'
  expect({ text, outcome: outcomeOf(() => readMembers(text)) }).toEqual({ text, outcome: members })
}

const space = fc.string({ unit: fc.constantFrom(' ', '\n', '\r', '\t'), maxLength: 2 })
const spaced = (inner: fc.Arbitrary<string>) => fc.tuple(space, inner, space).map((parts) => parts.join(''))

/** A string as JSON, some characters of it written as escapes. */
const jsonString = fc
  .array(
    fc.oneof(
      fc.constantFrom('a', 'tasks', '0', 'é', '😀', '\u2028', '\ufeff', '{', '}', '[', ']', ',', ':', ' '),
      fc.constantFrom('\\"', '\\\\', '\\/', '\\n', '\\u0022', '\\u005c', '\\ud83d\\ude00', '\\ud800', '\\u0000'),
    ),
    { maxLength: 5 },
  )
  .chain((parts) =>
    fc.constantFrom(0, 0, 0, 25, 28, 29, 30, 31, 40).map((pad) => `"${'x'.repeat(pad)}${parts.join('')}"`),
  )

const name = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('"tasks"', '"t\\u0061sks"', '"__proto__"', '"a"', '"1"', '"0"', '""') },
  jsonString,
)
const scalar = fc.oneof(
  jsonString,
  fc.constantFrom('null', 'true', 'false', '0', '-0', '1.5e3', '-12', '1e999', '123456789012345678901'),
)

const { value, object } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: spaced(fc.oneof({ maxDepth: 3, withCrossShrink: true }, scalar, tie('array'), tie('object'))),
  array: fc.tuple(space, fc.array(tie('value'), { maxLength: 4 })).map(([pad, items]) => `[${items.join(',') || pad}]`),
  object: fc
    .tuple(space, fc.array(fc.tuple(spaced(name), tie('value')), { maxLength: 4 }))
    .map(([pad, members]) => `{${members.map((member) => member.join(':')).join(',') || pad}}`),
}))
const document = spaced(fc.oneof({ weight: 4, arbitrary: object }, value))

/** One thing done to a text at a place: something put in, taken out, or doubled. */
const damage = fc.record({
  at: fc.nat(),
  remove: fc.nat(3),
  insert: fc.constantFrom(
    '',
    '',
    ',',
    ':',
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ' ',
    '1',
    'a',
    'null',
    '\u00a0',
    '\0',
    ',,',
    '],[',
  ),
})

describe('JSON read in steps', () => {
  test('has the values that JSON.parse gives', () => {
    fc.assert(fc.property(document, expectAsJsonParse), { numRuns: 600 })
  })

  test('is refused where JSON.parse refuses a damaged text, and only there', () => {
    const damaged = fc.tuple(document, fc.array(damage, { minLength: 1, maxLength: 2 })).map(([text, damages]) =>
      damages.reduce((before, { at, remove, insert }) => {
        const place = at % (before.length + 1)
        return before.slice(0, place) + insert + before.slice(place + remove)
      }, text),
    )
    fc.assert(fc.property(damaged, expectAsJsonParse), { numRuns: 1_500 })
  })

  test('is refused where JSON.parse refuses a text that breaks off, and only there', () => {
    fc.assert(
      fc.property(object, (text) => {
        for (let length = 0; length < Math.min(text.length, 60); length++) expectAsJsonParse(text.slice(0, length))
      }),
      { numRuns: 60 },
    )
  })

  test('is refused where JSON.parse refuses a heap of tokens, and only there', () => {
    const token = fc.constantFrom('{', '}', '[', ']', ',', ':', '"a"', '"tasks":[', '1', ' ', 'null', '"', '\\', '"a":')
    const heap = fc.array(token, { maxLength: 10 }).map((tokens) => tokens.join(''))
    fc.assert(
      fc.property(
        fc.oneof(
          heap,
          heap.map((inner) => `{"tasks":[${inner}]}`),
        ),
        expectAsJsonParse,
      ),
      { numRuns: 1_500 },
    )
  })

  test.each([
    '',
    ' ',
    '{}',
    '{ }',
    '{,}',
    '{"a":}',
    '{"a"}',
    '{"a":1,}',
    '{,"a":1}',
    '{"a":1,,"b":2}',
    '{"a":1 "b":2}',
    '{"a" "b":2}',
    '{"a"::1}',
    '{a:1}',
    "{'a':1}",
    '{1:1}',
    '{1"a":1}',
    '{"a":1}}',
    '{"a":1}]',
    '{"a":1} x',
    '{"a":1}\u00a0',
    '{"tasks":[1,]}',
    '{"tasks":[,1]}',
    '{"tasks":[1 2]}',
    '{"tasks":[}]}',
    '{"tasks":[{],[}]}',
    '{"tasks":[1],[2]}',
    '{"tasks":[1]1}',
    '{"tasks":[]]}',
    '{"tasks":[[]}',
    '{"tasks":[ ]}',
    '{"tasks":{},"tasks":[1],"tasks":[2,3]}',
    '{"tasks":[1],"tasks":null}',
    '{"tasks":["\\"]"]}',
    '{"tasks":["\\\\",1]}',
    '{"tasks":["\\\\\\"",1]}',
    '{"a":"unterminated}',
    '{"a":"\t"}',
    '{"__proto__":{"tasks":[1]}}',
    '{"a":{"__proto__":1}}',
    '{"2":1,"1":2}',
    '[{"tasks":[]}]',
    'null',
    '"{}"',
  ])('agrees with JSON.parse on %j', (text) => {
    expectAsJsonParse(text)
  })

  test('agrees with JSON.parse on lists longer than one batch, broken or not', () => {
    const items = Array.from({ length: 4_000 }, (_, i) => `{"id":"t${i}","params":{"text":"${'x'.repeat(i % 50)}"}}`)
    const whole = `{"before":1,"tasks":[${items.join(' ,\n')}],"after":[2]}`
    expect(whole.length).toBeGreaterThan(200_000)
    expectAsJsonParse(whole)
    expectAsJsonParse(`{"tasks":[${items.join('')}]}`)
    for (const place of [0, 1_999, 3_999]) {
      for (const broken of ['', '1 2', '{', '}', '"', '{"a":}']) {
        expectAsJsonParse(`{"tasks":[${items.with(place, broken).join(',')}]}`)
      }
    }
  })

  test('agrees with JSON.parse on values longer than one slice, broken or not', () => {
    const long = 'x'.repeat(200_000)
    const list = Array.from({ length: 60_000 }, (_, i) => `[${i}]`).join(',')
    const values = [
      `"${long}"`,
      `[${list}]`,
      `{"a":{"b":[${list}]}}`,
      `"${'\\\\'.repeat(100_000)}"`,
      '1'.repeat(300_000),
    ]
    for (const large of values) {
      for (const text of [
        large,
        large.slice(0, -1),
        `${large}]`,
        `${large}}`,
        `${large} 1`,
        `[${large}`,
        `${large},`,
      ]) {
        expectAsJsonParse(`{"a":${text},"b":1}`)
        expectAsJsonParse(`{"tasks":[1,${text},2]}`)
      }
    }
  })

  test('pauses while it reads a large text', () => {
    const items = Array.from({ length: 20_000 }, (_, i) => `"member ${i}":${i}`).join(',')
    const pausesOf = (work: Generator<void, unknown, void>) => {
      let pauses = 0
      while (!work.next().done) pauses++
      return pauses
    }
    expect(pausesOf(parseMembers(bytesOf(`{${items}}`), () => {}))).toBeGreaterThan(20)
    const numbers = Array.from({ length: 200_000 }, (_, i) => i).join(',')
    expect(pausesOf(parseObjectWithArrays(bytesOf(`{"tasks":[${numbers}]}`), { tasks: true }))).toBeGreaterThan(10)
    const inner = bytesOf(`{"a":{"b":{"tasks":[${numbers}]}}}`)
    expect(pausesOf(parseObjectWithArrays(inner, { a: { b: { tasks: true } } }))).toBeGreaterThan(10)
  })

  test('keeps members in the order of the text, repeated ones too', () => {
    expect(membersOf(bytesOf('{"b":1,"10":2,"9":3,"b":4,"__proto__":5}'))).toEqual([
      ['b', 1],
      ['10', 2],
      ['9', 3],
      ['b', 4],
      ['__proto__', 5],
    ])
  })

  test('has no prototype to be mistaken for members', () => {
    const found = readWithArray('{"__proto__":{"tasks":[1]},"a":1}') as Record<string, unknown>
    expect(found.tasks).toBeUndefined()
    expect(Object.keys(found)).toEqual(['__proto__', 'a'])
  })

  test('may begin with a byte order mark, but only with one', () => {
    expect(readWithArray('\ufeff {"tasks":[1]}')).toEqual(JSON.parse('{"tasks":[1]}'))
    expect(readMembers('\ufeff{"a":1}')).toEqual(readMembers('{"a":1}'))
    expect(parseJson(bytesOf('\ufeff[1]'))).toEqual([1])
    expect(() => readWithArray('\ufeff\ufeff{}')).toThrow(JsonSyntaxError)
  })

  test.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['half of a character', [0xe2, 0x82]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
  ])('is refused when it holds %s', (_, bytes) => {
    for (const [before, after] of [
      ['{"tasks":["', '"]}'],
      ['{"a":"', '"}'],
      ['{"', '":1}'],
      ['["', '"]'],
    ]) {
      const text = new Uint8Array([...bytesOf(before!), ...bytes, ...bytesOf(after!)])
      expect(() => runSync(parseObjectWithArrays(text, { tasks: true }))).toThrow('the text is not valid UTF-8')
      expect(() => membersOf(text)).toThrow('the text is not valid UTF-8')
    }
  })

  test('says what is wrong in the parser’s own words', () => {
    expect(() => parseJson(bytesOf('{"a":1'))).toThrow("Expected '}'")
    expect(() => readMembers('[1]')).toThrow('expected an object')
    expect(() => readMembers('{"a" 1}')).toThrow("Expected ':' before value in object property definition")
  })
})
