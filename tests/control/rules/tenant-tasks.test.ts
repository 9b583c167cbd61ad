/** Each way in which a task could run with the rights of a service, and what a tenant may do without the right `host`. */
import { describe, expect, test } from 'bun:test'
import { whyHost, whyOtherTenant } from '../../../control/rules/tenant-tasks.ts'

const servers = { hasCommands: true, isCommand: (name: string) => name === 'files' }
const strict = { sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } }
const ofRuntime = (change: object) => ({ script: 'id', ...strict, ...change })
const inSandbox = (change: object) => ofRuntime({ sandbox: { profile: 'linux_sandbox', ...change } })

const fieldOf = (type: string, toolName: string | undefined, input: unknown): string | undefined =>
  whyHost({ type, toolName, input }, servers)?.split(': ')[0]

describe('types', () => {
  test.each([
    ['os', 'noop', 'free'],
    ['os', 'sleep', 'free'],
    ['os', 'http', 'free'],
    ['approval', undefined, 'free'],
    ['wait', undefined, 'free'],
    ['group', undefined, 'free'],
    ['os', 'shell', 'type'],
    ['os', 'file', 'type'],
    ['os', 'dns', 'type'],
    ['os', 'tcp', 'type'],
    ['os', undefined, 'type'],
    ['cli-skills', 'backup', 'type'],
    ['own-executor', undefined, 'type'],
  ])('%s %p: %s', (type, toolName, expected) => {
    expect(fieldOf(type, toolName, {}) ?? 'free').toBe(expected)
  })
})

describe('a runtime task', () => {
  test.each<[input: unknown, field: string | undefined]>([
    [ofRuntime({}), undefined],
    [inSandbox({ namespaces: { net: true, cgroup: false, pid: null }, network: 'none' }), undefined],
    [inSandbox({ network: { allow: ['*'] }, rootfs: '/srv/root', chroot: true }), undefined],
    [ofRuntime({ execution: { env: { A: { $from: 'a' } } }, control_context: { tenant: 'x' } }), undefined],
    [undefined, 'params.sandbox.profile'],
    ['linux_sandbox', 'params.sandbox.profile'],
    [{ script: 'id' }, 'params.sandbox.profile'],
    [ofRuntime({ sandbox: null }), 'params.sandbox.profile'],
    [inSandbox({ profile: 'process' }), 'params.sandbox.profile'],
    [inSandbox({ network: 'host' }), 'params.sandbox.network'],
    ...['mount', 'pid', 'uts', 'ipc', 'net', 'user'].flatMap((name): [unknown, string][] => [
      [inSandbox({ namespaces: { [name]: false } }), `params.sandbox.namespaces.${name}`],
      [inSandbox({ namespaces: { [name]: 0 } }), `params.sandbox.namespaces.${name}`],
    ]),
    [ofRuntime({ policy: undefined }), 'params.policy.capability_mode'],
    [ofRuntime({ policy: { capability_mode: 'adaptive' } }), 'params.policy.capability_mode'],
    [ofRuntime({ policy: {}, control_context: { requires_strict_sandbox: true } }), 'params.policy.capability_mode'],
  ])('%j', (input, field) => {
    expect(fieldOf('runtime', 'script', input)).toBe(field!)
  })

  test.each([
    { $from: 'a' },
    { $param: 'p' },
    { $item: '' },
    { $index: true },
    { $graph: '/state' },
    { $literal: 'host' },
  ])('has no %j where its fence is described', (later) => {
    expect(fieldOf('runtime', 'script', { ...later, ...strict })).toBe('params')
    expect(fieldOf('runtime', 'script', ofRuntime({ sandbox: { ...later, profile: 'linux_sandbox' } }))).toBe(
      'params.sandbox',
    )
    expect(fieldOf('runtime', 'script', inSandbox({ network: later }))).toBe('params.sandbox')
    expect(fieldOf('runtime', 'script', inSandbox({ namespaces: { net: later } }))).toBe('params.sandbox')
    expect(fieldOf('runtime', 'script', ofRuntime({ policy: { capability_mode: 'strict', x: later } }))).toBe(
      'params.policy',
    )
  })
})

test.each<[input: unknown, field: string | undefined]>([
  [{ url: 'https://example.org' }, undefined],
  [{ url: { $from: 'a' }, save_to: null }, undefined],
  [{ url: 'https://example.org', save_to: '/etc/cron.d/x' }, 'params.save_to'],
  [{ url: 'https://example.org', save_to: { $from: 'a' } }, 'params.save_to'],
  [{ $from: 'a' }, 'params'],
])('an http task writes no file of the service: %j', (input, field) => {
  expect(fieldOf('os', 'http', input)).toBe(field!)
})

describe('an MCP server that is a command', () => {
  test.each<[toolName: string | undefined, input: unknown, field: string | undefined]>([
    ['web/search', { $from: 'a' }, undefined],
    ['builtin/echo', {}, undefined],
    ['echo', {}, undefined],
    ['poll', { handle_id: 'a' }, undefined],
    ['call', { server: 'web', tool: 'files/x' }, undefined],
    ['call', { tool: 'web/files/x' }, undefined],
    ['discover', { server: 'web' }, undefined],
    ['files/read', {}, 'tool_name'],
    ['read', {}, 'tool_name'],
    [undefined, {}, 'tool_name'],
    ['call', { server: 'files', tool: 'web/x' }, 'params.server'],
    ['call', { server: { $from: 'a' }, tool: 'x' }, 'params.server'],
    ['call', { server: null, tool: 'files/x' }, 'params.tool'],
    ['call', { tool: { $from: 'a' } }, 'params.tool'],
    ['call', { tool: 'read' }, 'params.tool'],
    ['call', { $from: 'a' }, 'params'],
    ['discover', { server: 'files' }, 'params.server'],
    ['discover', {}, 'params.server'],
    ['discover', undefined, 'params.server'],
    ['discover', { $from: 'a' }, 'params'],
  ])('%p of %j', (toolName, input, field) => {
    expect(fieldOf('mcp', toolName, input)).toBe(field!)
  })

  test('where there is none, every tool may be called', () => {
    const none = { hasCommands: false, isCommand: () => false }
    expect(whyHost({ type: 'mcp', toolName: 'read', input: { $from: 'a' } }, none)).toBeUndefined()
  })
})

test.each<[type: string, input: unknown, isOther: boolean]>([
  ['runtime', { control_context: { tenant: 'acme', owner: 'ci' } }, false],
  ['runtime', { control_context: { tenant: null } }, false],
  ['runtime', { control_context: { $from: 'a' } }, false],
  ['runtime', undefined, false],
  ['mcp', { control_context: { tenant: 'globex' } }, false],
  ['runtime', { control_context: { tenant: 'globex' } }, true],
  ['runtime', { control_context: { tenant: { $param: 'p' } } }, true],
])('a task of a tenant names no other tenant: %s with %j', (type, input, isOther) => {
  const why = whyOtherTenant({ type, toolName: undefined, input }, 'acme')
  expect(why).toBe(isOther ? 'params.control_context.tenant: the token is of tenant acme (leave it out)' : undefined!)
})
