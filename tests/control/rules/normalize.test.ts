/** Goal: every way to name a tool ends in one form. Method: a table of all forms, and a rule for random names. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { LEGACY_OS_TYPES, normalizeTool } from '../../../control/rules/normalize.ts'

describe('a tool', () => {
  test.each<[string, string | undefined, string, string | undefined]>([
    ['shell', undefined, 'os', 'shell'],
    ['file', undefined, 'os', 'file'],
    ['http', undefined, 'os', 'http'],
    ['dns', undefined, 'os', 'dns'],
    ['tcp', undefined, 'os', 'tcp'],
    ['sleep', undefined, 'os', 'sleep'],
    ['noop', undefined, 'os', 'noop'],
    ['shell', 'file', 'os', 'shell'],
    ['os', 'shell', 'os', 'shell'],
    ['os', 'os.shell', 'os', 'shell'],
    ['os', 'os.os.shell', 'os', 'os.shell'],
    ['os', 'runtime.command', 'os', 'runtime.command'],
    ['os', undefined, 'os', undefined],
    ['os', '', 'os', ''],
    ['os.shell', undefined, 'os', 'shell'],
    ['os.shell', 'file', 'os', 'shell'],
    ['os.', undefined, 'os.', undefined],
    ['runtime', undefined, 'runtime', undefined],
    ['runtime', 'runtime.script', 'runtime', 'script'],
    ['runtime.command', undefined, 'runtime', 'command'],
    ['runtime.script', undefined, 'runtime', 'script'],
    ['mcp', 'builtin/echo', 'mcp', 'builtin/echo'],
    ['mcp', 'mcp.call', 'mcp', 'call'],
    ['mcp.call', undefined, 'mcp.call', undefined],
    ['cli-skills', 'cli-skills.deploy', 'cli-skills', 'deploy'],
    ['Shell', undefined, 'Shell', undefined],
    ['constructor', undefined, 'constructor', undefined],
  ])('of type %j and name %j is stored as type %j and name %j', (type, toolName, storedType, storedName) => {
    expect(normalizeTool(type, toolName)).toEqual({ type: storedType, toolName: storedName })
  })

  test('keeps the form it has reached', () => {
    const types = fc.oneof(fc.constantFrom(...LEGACY_OS_TYPES, 'os', 'os.shell', 'runtime', 'mcp'), fc.string())
    const names = fc.option(fc.constantFrom('shell', 'os.shell', 'command', 'mcp.call', 'x'), { nil: undefined })
    fc.assert(
      fc.property(types, names, (type, toolName) => {
        const once = normalizeTool(type, toolName)
        expect(normalizeTool(once.type, once.toolName)).toEqual(once)
      }),
    )
  })
})
