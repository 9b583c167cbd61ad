/** `taskmill secrets`: what it keeps, shows and refuses. `client-up.long.test.ts` has the tasks that get it. */
import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_SECRET_BYTES } from '../../shared/files/secrets-directory.ts'
import { runClient } from '../support/client.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { startInTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'

const VALUE = `s3cr3t-${crypto.randomUUID()}`
const inHome = (home: TempDir) => (args: readonly string[], stdin?: string) =>
  runClient(['secrets', ...args], { env: { HOME: home.path, XDG_STATE_HOME: home.path }, stdin })
const dirIn = (home: TempDir) => join(home.path, 'taskmill', 'up', 'secrets')
const modeOf = (path: string) => statSync(path).mode & 0o777

describe('taskmill secrets', () => {
  test('keeps a value for its user alone, lists names and sizes, and removes it with what a killed client left', async () => {
    using home = tempDir()
    const [run, dir] = [inHome(home), dirIn(home)]
    expect((await run([])).envelope.data).toEqual({ secrets_dir: dir, secrets: [] })
    const set = await run(['set', 'api-token'], VALUE)
    expect(set.envelope.data).toEqual({ secrets_dir: dir, name: 'api-token', bytes: VALUE.length, replaced: false })
    expect([modeOf(dir), modeOf(join(dir, 'api-token'))]).toEqual([0o700, 0o600])
    expect((await run(['set', 'api-token'], `${VALUE}2`)).envelope.data).toMatchObject({ replaced: true })
    expect(readFileSync(join(dir, 'api-token'), 'utf8')).toBe(`${VALUE}2`)
    expect(readdirSync(dir)).toEqual(['api-token'])
    writeFileSync(join(dir, 'open'), 'x')
    chmodSync(join(dir, 'open'), 0o644)
    const listed = await run(['list'])
    const changed_at = expect.stringMatching(/^\d{4}-.*Z$/)
    expect(listed.envelope.data?.secrets).toEqual([
      { name: 'api-token', bytes: VALUE.length + 1, changed_at },
      { name: 'open', bytes: 1, changed_at, fault: 'is open to other users (chmod 600 its file)' },
    ])
    for (const { stdout, stderr } of [set, listed]) expect(stdout + stderr).not.toContain(VALUE)
    writeFileSync(join(dir, 'api-token~1'), VALUE)
    expect((await run(['rm', 'api-token'])).envelope.error?.message).toContain('did you mean "remove"?')
    expect((await run(['remove', 'api-token'])).envelope.data).toMatchObject({ name: 'api-token', removed: true })
    expect(readdirSync(dir)).toEqual(['open'])
  })

  test.each([
    ['a\n', 'a'],
    ['a\r\n', 'a'],
    ['a\n\n', 'a\n\n'],
    ['-----BEGIN-----\nb\n', '-----BEGIN-----\nb\n'],
  ])('keeps %j as %j', async (given, kept) => {
    using home = tempDir()
    expect((await inHome(home)(['set', 'x'], given)).exitCode).toBe(0)
    expect(readFileSync(join(dirIn(home), 'x'), 'utf8')).toBe(kept)
  })

  test.each<[args: string[], stdin: string, exitCode: number, message: string]>([
    [['set'], '', 2, 'secrets set needs NAME'],
    [['set', 'x', VALUE], '', 2, 'secrets set has too many arguments: the value comes from standard input'],
    [['set', `x=${VALUE}`], '', 2, 'invalid NAME: the name of a secret has 1 to 128 letters'],
    [['set', '..'], 'a', 2, 'invalid NAME'],
    [['list', VALUE], '', 2, 'secrets list has too many arguments'],
    [['set', 'x'], '', 1, 'standard input is empty: expected the value of the secret'],
    [['set', 'x'], '\n', 1, 'the value of the secret is empty'],
    [['set', 'x'], 'x'.repeat(MAX_SECRET_BYTES + 1), 1, `larger than ${MAX_SECRET_BYTES} bytes`],
    [['set', 'x', '--secrets-dir', '/nowhere/secrets'], VALUE, 1, 'does not exist (mkdir -m 700 it)'],
    [['remove', 'api-tokem'], '', 1, 'has no secret api-tokem (did you mean api-token?)'],
    [['sett', 'x'], '', 2, 'unknown subcommand "secrets sett" (did you mean "set"?)'],
  ])(
    '%j is refused, keeps nothing and repeats no argument that may be a value',
    async (args, stdin, exitCode, message) => {
      using home = tempDir()
      const run = inHome(home)
      await run(['set', 'api-token'], 'a')
      const refused = await run(args, stdin)
      expect([refused.exitCode, refused.envelope.error?.message]).toEqual([exitCode, expect.stringContaining(message)])
      expect(refused.stdout + refused.stderr).not.toContain(VALUE)
      expect(readdirSync(dirIn(home))).toEqual(['api-token'])
    },
  )

  test('a directory that is named is used as it is, and refused while others can read it', async () => {
    using home = tempDir()
    const named = join(home.path, 'named')
    mkdirSync(named, { mode: 0o755 })
    const set = () => inHome(home)(['set', 'x', '--secrets-dir', named], 'a')
    expect((await set()).envelope.error?.message).toBe(`--secrets-dir ${named} is open to other users (chmod 700 it)`)
    chmodSync(named, 0o700)
    expect((await set()).envelope.data).toMatchObject({ secrets_dir: named })
    expect(readFileSync(join(named, 'x'), 'utf8')).toBe('a')
  })

  test.each<[title: string, typed: string, exitCode: number, kept: string | undefined]>([
    ['a line', `${VALUE}\r`, 0, VALUE],
    ['corrected', `wrong\x15${VALUE}é!\x7f\x7f\r`, 0, VALUE],
    ['Ctrl-C', `${VALUE}\x03`, 130, undefined],
    ['several lines', `${VALUE}\rb\r`, 2, undefined],
  ])('a terminal is asked for the value and never shows it: %s', async (_, typed, exitCode, kept) => {
    using home = tempDir()
    const env = { HOME: home.path, XDG_STATE_HOME: home.path }
    const run = await startInTerminal(['secrets', 'set', 'x'], { url: '', env })
    await until(run.output, (shown) => shown.includes('Value of x (not shown): '))
    run.type(typed)
    expect(await run.exited).toBe(exitCode)
    expect(run.output()).not.toContain(VALUE)
    const names = (await inHome(home)([])).envelope.data?.secrets as { name: string }[]
    expect(names.map(({ name }) => name)).toEqual(kept === undefined ? [] : ['x'])
    if (kept !== undefined) expect(readFileSync(join(dirIn(home), 'x'), 'utf8')).toBe(kept)
  })
})
