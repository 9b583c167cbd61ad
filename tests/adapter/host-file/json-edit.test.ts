/**
 * Goal: an entry gets into a JSON file of a host, and nothing else changes. Method: tables of files as people write them, and
 * random documents with comments and trailing commas.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { visit } from 'jsonc-parser'
import { HostFileFault } from '../../../adapter/host-file/fault.ts'
import { editedJson } from '../../../adapter/host-file/json-edit.ts'

const ENTRY = { command: '/bin/taskmill', args: ['mcp'] }
const edit = (source: string, entry: Record<string, unknown> = ENTRY) =>
  editedJson(source, { key: 'mcpServers', name: 'taskmill', entry: () => entry })
const meaning = (source: string) =>
  Bun.JSONC.parse(source.replace(/^\uFEFF/, '')) as Record<string, unknown> & {
    readonly mcpServers: Readonly<Record<string, object>>
  }
const SHORT = { url: 'x' }

describe('a file', () => {
  test.each([
    ['is empty', '', '{\n  "mcpServers": {\n    "taskmill": {\n      "url": "x"\n    }\n  }\n}\n'],
    [
      'has only comments',
      '// mine\n',
      '{\n  "mcpServers": {\n    "taskmill": {\n      "url": "x"\n    }\n  }\n} // mine\n',
    ],
    ['holds an empty object', '{}', '{\n  "mcpServers": {\n    "taskmill": {\n      "url": "x"\n    }\n  }\n}'],
    [
      'has other settings',
      '{\n    "theme": "dark"\n}\n',
      '{\n    "theme": "dark",\n    "mcpServers": {\n        "taskmill": {\n            "url": "x"\n        }\n    }\n}\n',
    ],
    [
      'has other servers, indented with tabs',
      '{\n\t"mcpServers": {\n\t\t"a": {"url": "y"}\n\t}\n}\n',
      '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"url": "y"\n\t\t},\n\t\t"taskmill": {\n\t\t\t"url": "x"\n\t\t}\n\t}\n}\n',
    ],
    [
      'has a comment behind the last server',
      '{\n  "mcpServers": {\n    "a": {} // keep me here\n    // and me\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": {},\n    "taskmill": {\n      "url": "x"\n    } // keep me here\n    // and me\n  }\n}\n',
    ],
    [
      'has trailing commas',
      '{\n  "mcpServers": {\n    "a": {}, /* 1 */\n  },\n}\n',
      '{\n  "mcpServers": {\n    "a": {},\n    "taskmill": {\n      "url": "x"\n    }, /* 1 */\n  },\n}\n',
    ],
    [
      'has an older entry',
      '{\n  "mcpServers": {\n    "taskmill": {"url": "old"}, // ours\n    "b": {}\n  }\n}\n',
      '{\n  "mcpServers": {\n    "taskmill": {\n      "url": "x"\n    }, // ours\n    "b": {}\n  }\n}\n',
    ],
    [
      'is one line',
      '{"a": 1, "mcpServers": {"b": {}}}',
      '{\n  "a": 1,\n  "mcpServers": {\n    "b": {},\n    "taskmill": {\n      "url": "x"\n    }\n  }\n}',
    ],
    [
      'has lines of Windows',
      '{\r\n  "a": 1\r\n}\r\n',
      '{\r\n  "a": 1,\r\n  "mcpServers": {\r\n    "taskmill": {\r\n      "url": "x"\r\n    }\r\n  }\r\n}\r\n',
    ],
    [
      'has a block comment over the end of a line',
      '{\n  "a": 1 /* one\n two */\n}\n',
      '{\n  "a": 1,\n  "mcpServers": {\n    "taskmill": {\n      "url": "x"\n    }\n  } /* one\n two */\n}\n',
    ],
  ])('that %s', (_, before, after) => {
    expect(edit(before, SHORT)).toBe(after)
    expect(edit(after, SHORT)).toBe(after)
  })

  test('keeps its byte order mark', () => {
    expect(edit('\uFEFF{}')).toStartWith('\uFEFF{')
    expect(meaning(edit('\uFEFF{}'))).toEqual({ mcpServers: { taskmill: ENTRY } })
  })

  test('with names of the language is a file like any other', () => {
    const before = '{"__proto__": {"mcpServers": 1}, "constructor": 2, "mcpServers": {"__proto__": {}}}'
    const after = meaning(edit(before))
    expect(Object.keys(after)).toEqual(['__proto__', 'constructor', 'mcpServers'])
    expect(Object.keys(after.mcpServers)).toEqual(['__proto__', 'taskmill'])
  })

  test.each([
    ['{', 'it is not valid JSON: '],
    ['{"a": 1,, }', 'it is not valid JSON: '],
    ['{"a": "', 'it is not valid JSON: '],
    ['{} {}', 'it is not valid JSON: '],
    ['/* {}', 'it is not valid JSON: '],
    ['[]', 'it holds no JSON object'],
    ['null', 'it holds no JSON object'],
    ['{"mcpServers": []}', '"mcpServers" is no object'],
    ['{"mcpServers": null}', '"mcpServers" is no object'],
    ['{"mcpServers": {"taskmill": "x"}}', '"taskmill" in "mcpServers" is no object'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'it is nested too deep'],
  ])('%j is refused', (source, fault) => {
    expect(() => edit(source)).toThrow(HostFileFault)
    expect(() => edit(source)).toThrow(fault)
  })

  test('of some megabytes is edited at once', () => {
    const history = Array.from({ length: 20_000 }, (_, i) => ({ i, text: 'x // no comment " '.repeat(10) }))
    const source = JSON.stringify({ history, mcpServers: { a: {} } }, null, 2)
    const since = process.cpuUsage() // the machine may be busy
    expect(meaning(edit(source)).history).toEqual(history)
    const { user, system } = process.cpuUsage(since)
    expect((user + system) / 1_000).toBeLessThan(10_000)
  })
})

/** A document as text, with comments and commas between its tokens. */
const gap = fc.constantFrom('', ' ', '\n', '\n\t', ' // a "comment" {\n', '/* x, } */', '\r\n  ')
const key = fc.oneof(fc.constantFrom('mcpServers', 'taskmill', '__proto__', 'a//b', '/*', ''), fc.string())
const document: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc
      .oneof(
        fc.integer(),
        fc.string(),
        fc.boolean(),
        fc.constant(null),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
      )
      .map((value) => JSON.stringify(value)),
    tie('object'),
    tie('array'),
  ),
  object: fc
    .tuple(fc.array(fc.tuple(key, gap, tie('value'), gap), { maxLength: 5 }), gap, fc.boolean())
    .map(([members, space, hasComma]) => {
      const unique = members.filter(([name], i) => members.findIndex(([other]) => other === name) === i)
      const inner = unique.map(
        ([name, before, value, after]) => `${before}${JSON.stringify(name)}${after}:${before}${value}${after}`,
      )
      return `{${inner.join(',')}${hasComma && inner.length > 0 ? ',' : ''}${space}}`
    }),
  array: fc
    .tuple(fc.array(tie('value'), { maxLength: 4 }), gap)
    .map(([values, space]) => `[${values.join(`,${space}`)}${space}]`),
})).object

test('any document says the same with the entry, has all its comments, and is not edited twice', () => {
  fc.assert(
    fc.property(document, gap, (object, space) => {
      const source = `${space}${object}${space}`
      const before = meaning(source)
      const servers = Object.hasOwn(before, 'mcpServers') ? before.mcpServers : {}
      const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
      const present = isObject(servers) && Object.hasOwn(servers, 'taskmill') ? servers.taskmill : {}
      if (!isObject(servers) || !isObject(present)) {
        expect(() => edit(source)).toThrow(HostFileFault)
        return
      }
      const after = edit(source)
      expect(meaning(after)).toEqual({ ...before, mcpServers: { ...servers, taskmill: ENTRY } })
      expect(edit(after)).toBe(after)
      if (present === undefined || Object.keys(present).length > 0) return // its own comments go
      const commentsOf = (text: string) => {
        const comments: string[] = []
        visit(text, { onComment: (offset, length) => comments.push(text.slice(offset, offset + length)) })
        return comments
      }
      if (!Object.hasOwn(servers, 'taskmill')) expect(commentsOf(after)).toEqual(commentsOf(source))
    }),
    { numRuns: 2_000 },
  )
})
