/** Goal: every name of a kind leads to it. Method: a table of all names in odd cases, and a rule for the rest. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { functionName, KINDS, resolveKind } from '../../../control/adapter-v1/kinds.ts'
import { ACTION_KINDS } from '../../../shared/contract/adapter-v1.ts'

const NAMES: readonly [string, string, object?][] = [
  ...ACTION_KINDS.map((kind): [string, string] => [kind, kind]),
  ['shell', 'os.shell'],
  ['bash', 'os.shell'],
  ['terminal.command', 'os.shell'],
  ['file.read', 'os.file', { action: 'read' }],
  ['file.write', 'os.file', { action: 'write' }],
  ['http.request', 'os.http'],
  ['command', 'runtime.command'],
  ['script', 'runtime.script'],
  ['noop', 'os.noop'],
  ['dns', 'os.dns'],
  ['tcp', 'os.tcp'],
  ['sleep', 'os.sleep'],
]

describe('a kind', () => {
  test.each(NAMES)('goes by the name %s: %s', (name, kind, preset = {}) => {
    for (const written of [name, name.toUpperCase(), name[0]!.toUpperCase() + name.slice(1)]) {
      expect(resolveKind(written)).toEqual({ kind, preset } as ReturnType<typeof resolveKind>)
    }
  })

  test('goes by no other name', () => {
    const known = new Set(NAMES.map(([name]) => name))
    const aliases = Object.values(KINDS).flatMap((kind) => Object.keys(kind.aliases ?? {}))
    expect([...ACTION_KINDS, ...aliases].sort()).toEqual([...known].sort())
    const names = fc.oneof(fc.constantFrom('', '__proto__', 'constructor', ' os.shell', 'os', 'file'), fc.string())
    fc.assert(
      fc.property(names, (name) => {
        expect(resolveKind(name) === undefined).toBe(!known.has(name.toLowerCase()))
      }),
    )
  })

  test('has a name that model providers accept for a function, each its own', () => {
    const names = ACTION_KINDS.map(functionName)
    expect(names.filter((name) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name))).toEqual([])
    expect(new Set(names).size).toBe(ACTION_KINDS.length)
  })
})
