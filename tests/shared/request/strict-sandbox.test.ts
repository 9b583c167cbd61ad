/** What a token with a tenant may have run without the right `host`: every field that opens a sandbox is named. */
import { expect, test } from 'bun:test'
import { NAMESPACES } from '../../../shared/contract/runtime-request.ts'
import { needsHost, whyNotStrict } from '../../../shared/request/strict-sandbox.ts'

const STRICT = { sandbox: { profile: 'linux_sandbox' }, policy: { capability_mode: 'strict' } } as const

test.each([
  ['by its policy', STRICT],
  ['by its context', { ...STRICT, policy: {}, control_context: { requires_strict_sandbox: true } }],
  ['with rules', { ...STRICT, sandbox: { profile: 'linux_sandbox', network: { allow: ['pypi.org:443'] } } }],
  [
    'with the namespaces of every sandbox',
    { ...STRICT, sandbox: { profile: 'linux_sandbox', namespaces: { pid: true, cgroup: false } } },
  ],
])('a sandbox that is strict %s is enough', (_, request) => {
  expect(whyNotStrict(request)).toBeUndefined()
})

test.each([
  ['sandbox.profile', {}],
  ['sandbox.profile', { ...STRICT, sandbox: { profile: 'process' } }],
  ['sandbox.network', { ...STRICT, sandbox: { profile: 'linux_sandbox', network: 'host' } }],
  ['policy.capability_mode', { sandbox: STRICT.sandbox }],
  ['policy.capability_mode', { sandbox: STRICT.sandbox, policy: { capability_mode: 'adaptive' } }],
  ...NAMESPACES.filter((name) => name !== 'cgroup').map(
    (name) =>
      [
        `sandbox.namespaces.${name}`,
        { ...STRICT, sandbox: { profile: 'linux_sandbox', namespaces: { [name]: false } } },
      ] as const,
  ),
] as const)('%s is named where it opens the sandbox', (field, request) => {
  expect(whyNotStrict(request)).toStartWith(`${field} has to be `)
})

test('the mode of the service counts for requests that name none', () => {
  expect(whyNotStrict({ sandbox: STRICT.sandbox }, 'strict')).toBeUndefined()
  expect(whyNotStrict({ ...STRICT, policy: { capability_mode: 'adaptive' } }, 'strict')).toBeDefined()
})

test('the refusal names the token, its tenant, the field and the remedy', () => {
  expect(needsHost({ name: 'ci', rights: ['submit'], tenant: 'acme' }, whyNotStrict({})!)).toBe(
    'the token ci of tenant acme runs tasks in a strict sandbox only: sandbox.profile has to be linux_sandbox (or give the token the right host)',
  )
})
