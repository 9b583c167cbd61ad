/**
 * Goal: a command of the operator is a source of secrets: bounded in time, bytes and number, asked once for what many need, and
 * never a way to show a value or to run something else.
 * Method: the real class with shell scripts that count their runs, wait, hang, and print too much.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../../shared/contract/errors.ts'
import {
  commandWords,
  MAX_KEPT_SECRETS,
  MAX_SECRET_COMMANDS,
  SecretCommand,
  SecretCommandFault,
} from '../../../shared/files/secret-command.ts'
import { MAX_SECRET_BYTES, openSecrets } from '../../../shared/files/secrets-directory.ts'
import { gone } from '../../support/task-processes.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

let temp: TempDir
beforeEach(() => {
  temp = tempDir()
})
afterEach(() => temp[Symbol.dispose]())

/** A command that runs `script` with the name as `$1`, in a directory of its own. */
const scripted = (script: string, settings: { ttlMs?: number; timeoutMs?: number } = {}) => ({
  ...{ command: `/bin/sh -c 'cd "$AT"; ${script}' sh {name}`, ttlMs: 60_000, timeoutMs: 20_000, ...settings },
  env: { PATH: process.env.PATH, AT: temp.path, UNSET: undefined },
})
const commandOf = (...given: Parameters<typeof scripted>) => new SecretCommand(scripted(...given), MAX_SECRET_BYTES)
const directoryOf = (script: string, more: object = {}) =>
  openSecrets({ secretsDir: '', credentialsDir: undefined, ownFiles: {}, command: scripted(script), ...more })
const file = (name: string) => join(temp.path, name)
const runs = () => readFileSync(file('runs'), 'utf8').trim().split('\n')
const COUNTED = 'echo $1 >> runs; printf "value of $1\\n"'

async function faultOf(command: SecretCommand, name = 'db') {
  const fault = await command.ready([name]).then(
    () => undefined,
    (error) => error,
  )
  expect(fault).toBeInstanceOf(SecretCommandFault)
  expect(command.value(name)).toBeUndefined()
  const { message, details } = fault as SecretCommandFault
  return { message, details }
}

describe('the words of a command', () => {
  test.each([
    ['pass show {name}', ['pass', 'show', '{name}']],
    ['  vault  kv get\t-field=value secret/{name} ', ['vault', 'kv', 'get', '-field=value', 'secret/{name}']],
    [`sh -c 'a "b" $c' sh {name}`, ['sh', '-c', 'a "b" $c', 'sh', '{name}']],
    [String.raw`op read "op://a \"b\"/{name}" c\ d ''`, ['op', 'read', 'op://a "b"/{name}', 'c d', '']],
    [`a'b'"c"d {name}`, ['abcd', '{name}']],
  ])('%s', (text, words) => expect([...commandWords(text)]).toEqual(words))

  test.each([
    ['pass show', 'needs a program, and {name} in an argument: "pass show {name}"'],
    ['{name}', 'needs a program, and {name} in an argument: "pass show {name}"'],
    ['{name} {name}', 'needs a program, and {name} in an argument: "pass show {name}"'],
    [`'' {name}`, 'needs a program, and {name} in an argument: "pass show {name}"'],
    [`pass 'show {name}`, 'has a quote or a \\ without its end'],
    ['pass {name} \\', 'has a quote or a \\ without its end'],
  ])('refused: %s', (text, why) => {
    expect(() => commandWords(text)).toThrow(new UsageError(`--secret-command ${why}`))
  })
})

describe('a command', () => {
  test('prints the value, with the environment of the service and without a shell of ours', async () => {
    const settings = { ...scripted(''), command: `/bin/echo '$(touch made)' {name}-{name} "*"` }
    const command = new SecretCommand(settings, MAX_SECRET_BYTES)
    await command.ready(['db'])
    expect(command.value('db')?.toString()).toBe('$(touch made) db-db *\n')
    expect(existsSync(file('made'))).toBe(false)
  })

  test('runs once for all who need a name, and its value is kept', async () => {
    const command = commandOf(COUNTED)
    await Promise.all([command.ready(['a', 'b']), command.ready(['b', 'a']), command.ready(['a'])])
    await command.ready(['b', 'a'])
    expect(runs().toSorted()).toEqual(['a', 'b'])
    expect(command.value('a')?.toString()).toBe('value of a\n')
  })

  test('is forgotten after its time, and not before its caller goes on', async () => {
    const command = commandOf(COUNTED, { ttlMs: 0 })
    for (const _ of [1, 2]) {
      await command.ready(['a', 'b'])
      expect(command.value('a')?.toString()).toBe('value of a\n')
      expect(command.value('b')?.toString()).toBe('value of b\n')
      await until(
        () => command.value('a'),
        (value) => value === undefined,
      )
    }
    expect(runs().toSorted()).toEqual(['a', 'a', 'b', 'b'])
  })

  test('runs for a few names at a time', async () => {
    mkdirSync(file('now'))
    const command = commandOf(
      'mkdir now/$1; ls now | wc -l >> runs; until [ -e go ]; do sleep 0.02; done; rmdir now/$1; echo x',
    )
    const names = Array.from({ length: MAX_SECRET_COMMANDS + 3 }, (_, i) => `n${i}`)
    const ready = command.ready(names)
    await until(
      () => readdirSync(file('now')).length,
      (count) => count === MAX_SECRET_COMMANDS,
    )
    writeFileSync(file('go'), '')
    await ready
    expect(runs()).toHaveLength(names.length)
    expect(Math.max(...runs().map(Number))).toBe(MAX_SECRET_COMMANDS)
  })

  test('has the values of a bounded number of names in memory', async () => {
    const command = new SecretCommand({ ...scripted(''), command: '/bin/echo {name}' }, MAX_SECRET_BYTES)
    const names = Array.from({ length: MAX_KEPT_SECRETS }, (_, i) => `n${i}`)
    await command.ready(names)
    await command.ready(['last'])
    await until(
      () => command.value('n0'),
      (value) => value === undefined,
    )
    expect([command.value('n1')?.toString(), command.value('last')?.toString()]).toEqual(['n1\n', 'last\n'])
  })

  test('that fails says its exit code and nothing that it printed, and runs again', async () => {
    const command = commandOf('echo $1 >> runs; echo s3cret; echo s3cret >&2; exit 3')
    for (const _ of [1, 2]) {
      expect(await faultOf(command)).toEqual({
        message: 'the secret db: /bin/sh of --secret-command ended with exit code 3',
        details: { step: 'secret_command', secret: 'db', exit_code: 3 },
      })
    }
    expect(runs()).toEqual(['db', 'db'])
  })

  test('that hangs is ended with all of its processes', async () => {
    const command = commandOf('trap "" TERM; sleep 600 & echo $! > child; wait; sleep 600', { timeoutMs: 300 })
    const { message } = await faultOf(command)
    expect(message).toBe('the secret db: /bin/sh of --secret-command has not ended within 300ms')
    await gone(Number(readFileSync(file('child'), 'utf8')))
  })

  test.each([
    ['prints too much', `head -c ${MAX_SECRET_BYTES + 1} /dev/zero`, `printed more than ${MAX_SECRET_BYTES} bytes`],
    ['prints nothing', 'true', 'printed nothing'],
    ['is ended', 'kill -9 $$', 'was ended by SIGKILL'],
  ])('that %s is a fault', async (_, script, how) => {
    expect((await faultOf(commandOf(script))).message).toBe(`the secret db: /bin/sh of --secret-command ${how}`)
  })

  test('may print as many bytes as a file may have', async () => {
    const command = commandOf(`head -c ${MAX_SECRET_BYTES} /dev/zero`)
    await command.ready(['db'])
    expect(command.value('db')).toHaveLength(MAX_SECRET_BYTES)
  })

  test('that is no program is a fault', async () => {
    const command = new SecretCommand({ ...scripted(''), command: 'no-such-vault {name}' }, MAX_SECRET_BYTES)
    expect((await faultOf(command)).message).toBe(
      'the secret db: no-such-vault of --secret-command cannot start: ENOENT',
    )
  })
})

describe('secrets of a directory and a command', () => {
  const SHELL = { type: 'shell' }

  test('are those of files first', async () => {
    const secretsDir = file('secrets')
    mkdirSync(secretsDir, { mode: 0o700 })
    writeFileSync(join(secretsDir, 'filed'), 'of the file', { mode: 0o600 })
    const secrets = directoryOf(COUNTED, { secretsDir })
    await secrets.ready(['filed', 'db', 'db'], SHELL)
    expect(secrets.read('filed', SHELL).toString()).toBe('of the file')
    expect(secrets.read('db', SHELL).toString()).toBe('value of db\n')
    expect(runs()).toEqual(['db'])
    expect(secrets.whyNot('unheard-of', secrets.names(), SHELL)).toBeUndefined()
  })

  test('never run the command for what the asker may not have, nor with a name that is an option or a path', async () => {
    const secrets = directoryOf(COUNTED)
    const names = ['-c', '--help', '..', 'a/b', '', 'a b']
    await secrets.ready(names, SHELL)
    await secrets.ready(['db'], { type: 'http', to: [] })
    expect(existsSync(file('runs'))).toBe(false)
    for (const name of names) {
      expect(secrets.whyNot(name, new Set(), SHELL)).toStartWith(`there is no secret ${name} (`)
      expect(() => secrets.read(name, SHELL)).toThrow(`there is no secret ${name} (`)
    }
    expect(() => secrets.read('db', { type: 'http', to: [] })).toThrow('is for processes of tasks only')
  })

  test('come to nobody who has stopped to wait', async () => {
    const secrets = directoryOf('until [ -e go ]; do sleep 0.02; done; echo x')
    const stop = new AbortController()
    const ready = secrets.ready(['db'], SHELL, stop.signal)
    stop.abort(new Error('stopped'))
    await expect(ready).rejects.toThrow('stopped')
    writeFileSync(file('go'), '')
    await secrets.ready(['db'], SHELL)
  })

  test('are at most so many for one task', async () => {
    const names = Array.from({ length: MAX_KEPT_SECRETS + 1 }, (_, i) => `n${i}`)
    await expect(directoryOf(COUNTED).ready(names, SHELL)).rejects.toThrow(
      `needs ${MAX_KEPT_SECRETS + 1} secrets of --secret-command (at most ${MAX_KEPT_SECRETS})`,
    )
  })
})
