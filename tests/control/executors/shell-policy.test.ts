/** Goal: only programs of the list start under the default policy. Method: the list of the specification, and all else. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutionError } from '../../../control/executors/executor.ts'
import { ALLOWED_COMMANDS, checkCommand, checkScript } from '../../../control/executors/os/shell-policy.ts'

/** Source: spec, executor shell. */
const SPECIFIED =
  'echo cat ls date whoami hostname uname pwd curl wget ping dig grep awk sed head tail wc sort uniq find dir where type'

function denial(work: () => void): string | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof ExecutionError && error.code === 'denied') return error.message
    throw error
  }
  return undefined
}

describe('the allowlist', () => {
  test('is that of the specification', () => {
    expect([...ALLOWED_COMMANDS].toSorted()).toEqual(SPECIFIED.split(' ').toSorted())
  })

  test('looks at the base name only', () => {
    const prefixes = fc.constantFrom('', '/', '/bin/', './', '../../x/', '//usr//bin//', 'rm/', '/tmp/a b/')
    fc.assert(
      fc.property(prefixes, fc.constantFrom(...ALLOWED_COMMANDS), (prefix, name) => {
        expect(denial(() => checkCommand('allowlist', prefix + name))).toBeUndefined()
      }),
    )
  })

  test.each([
    ['rm', 'rm'],
    ['/bin/rm', 'rm'],
    ['/bin/echo/rm', 'rm'],
    ['bash', 'bash'],
    ['ECHO', 'ECHO'],
    ['echo ', 'echo '],
    [' echo', ' echo'],
    ['echo\n', 'echo\n'],
    ['echo;rm', 'echo;rm'],
    ['echo/', ''],
    ['bin\\echo', 'bin\\echo'],
    ['', ''],
    ['constructor', 'constructor'],
  ])('denies %j by its base name', (command, baseName) => {
    expect(denial(() => checkCommand('allowlist', command))).toBe(
      `command ${JSON.stringify(baseName)} is not in the allowed whitelist (a runtime.script task runs any command; SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open)`,
    )
  })

  test.each([
    ['echo hello', 'arguments belong into args'],
    ['/bin/echo /tmp/a', 'arguments belong into args'],
    [
      'git status',
      'arguments belong into args; a runtime.script task runs any command; SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open',
    ],
    [
      '/opt/my tool',
      'arguments belong into args; a runtime.script task runs any command; SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open',
    ],
  ])('says where the arguments of %j belong', (command, remedy) => {
    expect(denial(() => checkCommand('allowlist', command))).toBe(
      `command ${JSON.stringify(command)} is not in the allowed whitelist (${remedy})`,
    )
  })

  test('allows no script, which could start anything, and says what would', () => {
    expect(denial(() => checkScript('allowlist'))).toBe(
      'script is not in the allowed whitelist: scripts run only where SERVICE_SHELL_POLICY=open is set: taskmill up --shell open',
    )
  })
})

describe('the open policy', () => {
  test('allows every program and script', () => {
    fc.assert(
      fc.property(fc.string(), (command) => {
        expect(denial(() => checkCommand('open', command))).toBeUndefined()
      }),
    )
    expect(denial(() => checkScript('open'))).toBeUndefined()
  })
})
