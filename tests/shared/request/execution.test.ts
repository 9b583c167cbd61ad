/** Goal: what is accepted as arguments can be passed to a program, here. Method: real programs at the limits. */
import { expect, test } from 'bun:test'
import { systemCodeOf } from '../../../shared/contract/errors.ts'
import { MAX_STRING_BYTES, MAX_STRINGS_BYTES, validExecution } from '../../../shared/request/execution.ts'

/** The exit code of `true` with these arguments and variables, or the system's error. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number | string> {
  try {
    return await Bun.spawn(['/bin/true', ...args], { env: { ...env }, stdio: ['ignore', 'ignore', 'ignore'] }).exited
  } catch (error) {
    return systemCodeOf(error) ?? String(error)
  }
}

const accept = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  validExecution({ kind: 'command', program: '/bin/true', args: [...args], env })

const isLinux = process.platform === 'linux'

test.skipIf(!isLinux)(
  'one string as long as is accepted is passed, a longer one is not (skipped: not Linux)',
  async () => {
    const longest = 'x'.repeat(MAX_STRING_BYTES)
    const variable = { A: 'x'.repeat(MAX_STRING_BYTES - 'A='.length) }
    accept([longest], variable)
    expect(await run([longest], variable)).toBe(0)
    expect(await run([`${longest}x`])).toBe('E2BIG')
    expect(() => accept([`${longest}x`])).toThrow('at most 131071')
  },
)

test.skipIf(!isLinux)(
  'as many bytes as are accepted are passed, in few strings and in many (skipped: not Linux)',
  async () => {
    for (const length of [1, 100, 10_000]) {
      const perString = length + 1 + 8
      const count = Math.floor((MAX_STRINGS_BYTES - '/bin/true'.length - 9) / perString)
      const args = new Array<string>(count).fill('x'.repeat(length))
      accept(args)
      expect(await run(args)).toBe(0)
      expect(() => accept([...args, ...args.slice(0, Math.ceil(perString / length))])).toThrow(
        `at most ${MAX_STRINGS_BYTES}`,
      )
    }
  },
)
