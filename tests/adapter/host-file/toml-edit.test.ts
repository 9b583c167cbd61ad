/** Goal: a table gets into a TOML file of a host, and nothing else changes. Method: tables of files as people write them. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { HostFileFault } from '../../../adapter/host-file/fault.ts'
import { editedToml, shownTable } from '../../../adapter/host-file/toml-edit.ts'

const edit = (source: string, entry: Record<string, unknown> = { url: 'x' }) =>
  editedToml(source, { key: 'mcp_servers', name: 'taskmill', entry: () => entry })

const TABLE = '[mcp_servers.taskmill]\nurl = "x"\n'

describe('a file', () => {
  test.each([
    ['is empty', '', TABLE],
    ['does not end with a line end', 'model = "m"', `model = "m"\n\n${TABLE}`],
    ['has other tables', '# mine\n[a]\nb = 1 # one\n', `# mine\n[a]\nb = 1 # one\n\n${TABLE}`],
    ['has other servers', '[mcp_servers.b]\nurl = "y"\n', `[mcp_servers.b]\nurl = "y"\n\n${TABLE}`],
    [
      'has an older entry between others',
      '[a]\nb = 1\n\n[mcp_servers.taskmill] # ours\nurl = "old"\n\n# about c\n[c]\nd = 2\n',
      `[a]\nb = 1\n\n${TABLE}\n# about c\n[c]\nd = 2\n`,
    ],
    [
      'has an older entry with tables below it',
      '[mcp_servers."taskmill"]\ncommand = "old"\n[mcp_servers.taskmill.env]\nA = "1"\n[c]\nd = 2\n',
      `${TABLE}[c]\nd = 2\n`,
    ],
    ['has lines of Windows', 'a = 1\r\n', 'a = 1\r\n\r\n[mcp_servers.taskmill]\r\nurl = "x"\r\n'],
    [
      'has a server of a similar name',
      '[mcp_servers.taskmill2]\nurl = "y"\n',
      `[mcp_servers.taskmill2]\nurl = "y"\n\n${TABLE}`,
    ],
    [
      'has text that looks like the header',
      'a = """\n[mcp_servers.other]\n"""\n',
      `a = """\n[mcp_servers.other]\n"""\n\n${TABLE}`,
    ],
  ])('that %s', (_, before, after) => {
    expect(edit(before)).toBe(after)
    expect(edit(after)).toBe(after)
  })

  test.each([
    ['a = ', 'it is not valid TOML: '],
    ['mcp_servers = 1', 'mcp_servers is no table'],
    ['[mcp_servers]\ntaskmill = "x"', 'mcp_servers.taskmill is no table'],
    ['mcp_servers = { b = { url = "y" } }', 'in a form that cannot be edited'],
    ['[mcp_servers]\ntaskmill = { url = "y" }', 'in a form that cannot be edited'],
    ['mcp_servers.taskmill.url = "y"', 'in a form that cannot be edited'],
    ['a = """\n[mcp_servers.taskmill]\n"""\n[mcp_servers.taskmill]\nurl = "old"', 'in a form that cannot be edited'],
  ])('%j is refused', (source, fault) => {
    expect(() => edit(source)).toThrow(HostFileFault)
    expect(() => edit(source)).toThrow(fault)
  })
})

test('a table says what it was made of', () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.boolean(),
    fc.integer({ min: -1e9, max: 1e9 }),
    fc.array(fc.string(), { maxLength: 3 }),
  )
  const table = fc.dictionary(fc.string(), fc.oneof(leaf, fc.dictionary(fc.string(), leaf, { maxKeys: 3 })), {
    maxKeys: 5,
  })
  fc.assert(
    fc.property(table, (values) => {
      const read = Bun.TOML.parse(shownTable('mcp_servers.taskmill', values)) as { mcp_servers: { taskmill: object } }
      expect(read.mcp_servers.taskmill).toEqual(values)
    }),
    { numRuns: 500 },
  )
})

test('a value that TOML does not have is refused', () => {
  expect(() => shownTable('a', { b: null })).toThrow('a value that cannot be written')
  expect(() => shownTable('a', { b: Number.POSITIVE_INFINITY })).toThrow('a value that cannot be written')
})
