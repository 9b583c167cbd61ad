/**
 * Goal: a service reads secrets only from files that no other user can read or change, whole, and inside of its directory.
 * Method: the real functions on a temporary directory; another process rewrites a secret while it is read.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../../../shared/contract/errors.ts'
import { MAX_TASK_SECRETS_BYTES, secretValues } from '../../../shared/files/secret-values.ts'
import {
  MAX_SECRET_BYTES,
  openSecrets,
  SecretFault,
  SecretsDirectory,
} from '../../../shared/files/secrets-directory.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const isRoot = process.geteuid?.() === 0

let temp: TempDir
let path: string
const put = (name: string, value: string | Buffer = 'value', mode = 0o600) => {
  writeFileSync(join(path, name), value)
  chmodSync(join(path, name), mode)
}
beforeEach(() => {
  temp = tempDir()
  path = join(temp.path, 'secrets')
  mkdirSync(path, { mode: 0o700 })
})
afterEach(() => temp[Symbol.dispose]())

const SETTINGS = { credentialsDir: undefined, ownFiles: {} }
const refusal = (settings: Partial<Parameters<typeof openSecrets>[0]>) => {
  try {
    openSecrets({ secretsDir: path, ...SETTINGS, ...settings })
    return 'opened'
  } catch (error) {
    return error instanceof UsageError ? error.message : String(error)
  }
}
const reading = (name: string, directory = new SecretsDirectory(path)) => {
  try {
    return directory.read(name, { type: 'shell' }).toString()
  } catch (error) {
    return error instanceof SecretFault ? error.message : `unexpected ${error}`
  }
}

describe('the directory', () => {
  test.each([
    [0o700, 'opened'],
    [0o500, 'opened'],
    [0o750, 'opened'],
    [0o755, 'is open to other users (chmod 700 it)'],
    [0o770, 'is open to other users (chmod 700 it)'],
    [0o701, 'is open to other users (chmod 700 it)'],
  ])('of mode %o', (mode, expected) => {
    chmodSync(path, mode)
    expect(refusal({})).toBe(expected === 'opened' ? expected : `--secrets-dir ${path} ${expected}`)
    put('token')
    expect(reading('token')).toBe(expected === 'opened' ? 'value' : `the directory of the secrets ${expected}`)
  })

  test('that is missing or a file', () => {
    expect(refusal({ secretsDir: `${path}/none` })).toBe(`--secrets-dir ${path}/none does not exist (mkdir -m 700 it)`)
    put('token')
    expect(refusal({ secretsDir: `${path}/token` })).toBe(`--secrets-dir ${path}/token is no directory`)
  })

  test.skipIf(!isRoot)('of another user', () => {
    chownSync(path, 12_345, 12_345)
    const text = 'belongs to user 12345 (chown it to user 0 of the service, or to root)'
    expect(refusal({})).toBe(`--secrets-dir ${path} ${text}`)
  })

  test('with a file of the service itself', () => {
    put('service-token')
    const file = join(path, 'service-token')
    expect(refusal({ ownFiles: { 'token-file': file, 'mcp-config': '' } })).toBe(
      `--token-file ${file} lies in --secrets-dir, where every task could ask for it`,
    )
    using elsewhere = tempDir()
    const link = join(elsewhere.path, 'link')
    symlinkSync(file, link)
    expect(refusal({ ownFiles: { 'token-file': link } })).toBe(
      `--token-file ${link} lies in --secrets-dir, where every task could ask for it`,
    )
  })
})

describe('a file', () => {
  test.each<[name: string, make: () => void, expected: string]>([
    ['none', () => {}, 'there is no secret none (no such file in --secrets-dir)'],
    ['group', () => put('group', 'value', 0o640), 'value'],
    ['others', () => put('others', 'value', 0o604), 'the secret others is open to other users (chmod 600 its file)'],
    ['written', () => put('written', 'value', 0o620), 'the secret written is open to other users (chmod 600 its file)'],
    ['empty', () => put('empty', ''), 'the secret empty is empty'],
    ['dir', () => mkdirSync(join(path, 'dir')), 'the secret dir is not a file'],
    [
      'large',
      () => put('large', Buffer.alloc(MAX_SECRET_BYTES + 1)),
      'the secret large has 1048577 bytes (at most 1048576)',
    ],
    [
      'outside',
      () => {
        writeFileSync(join(temp.path, 'elsewhere'), 'value', { mode: 0o600 })
        symlinkSync('../elsewhere', join(path, 'outside'))
      },
      'the secret outside is a link that leads out of the directory of the secrets',
    ],
    [
      'within',
      () => {
        mkdirSync(join(path, '..data'))
        put('..data/within')
        symlinkSync('..data/within', join(path, 'within'))
      },
      'value',
    ],
  ])('%s', (name, make, expected) => {
    make()
    expect(reading(name)).toBe(expected)
  })

  test.skipIf(!isRoot)('of another user', () => {
    put('foreign')
    chownSync(join(path, 'foreign'), 12_345, 12_345)
    expect(reading('foreign')).toBe(
      'the secret foreign belongs to user 12345 (chown it to user 0 of the service, or to root)',
    )
  })

  test('a fifo makes nobody wait', () => {
    expect(Bun.spawnSync(['mkfifo', '-m', '600', join(path, 'fifo')]).exitCode).toBe(0)
    expect(reading('fifo')).toBe('the secret fifo is not a file')
  })

  test('that is rewritten while it is read is refused, with the remedy', async () => {
    put('moving', 'a'.repeat(300_000))
    await using writer = Bun.spawn(
      [
        process.execPath,
        '-e',
        `const { openSync, writeSync } = require('node:fs')
        const fd = openSync(process.argv[1], 'r+')
        const texts = ['a', 'b'].map((letter) => letter.repeat(300_000))
        for (let i = 0; ; i++) for (let at = 0; at < 300_000; at += 1_000) writeSync(fd, texts[i % 2].slice(at, at + 1_000), at)`,
        join(path, 'moving'),
      ],
      { stdout: 'ignore', stderr: 'inherit' },
    )
    const fault = 'the secret moving changes while it is read (write it to another file and rename that)'
    for (let faults = 0; faults < 20; ) {
      const text = reading('moving')
      if (text === fault) faults++
      else expect(text.length).toBe(300_000) // the writer did not get a processor meanwhile
    }
    writer.kill()
  })
})

describe('systemd credentials', () => {
  test('are the secrets of a service without --secrets-dir; its own files are not among them', () => {
    for (const name of ['token', 'db', 'other']) put(name)
    const ownFiles = { 'token-file': join(path, 'token') }
    const credentials = { ...SETTINGS, credentialsDir: path }
    const secrets = openSecrets({ ...credentials, secretsDir: '', ownFiles, otherFiles: [join(path, 'other')] })
    expect(reading('db', secrets)).toBe('value')
    for (const name of ['token', 'other']) {
      expect(reading(name, secrets)).toBe(`the secret ${name} is a file of the service itself, which no task gets`)
    }
    rmSync(path, { recursive: true })
    expect(reading('db', secrets)).toStartWith('the directory of the secrets does not exist')
  })

  test('do not count with it', () => {
    const other = join(temp.path, 'credentials')
    mkdirSync(other, { mode: 0o700 })
    writeFileSync(join(other, 'db'), 'value', { mode: 0o600 })
    const secrets = openSecrets({ ...SETTINGS, secretsDir: path, credentialsDir: other })
    expect(reading('db', secrets)).toBe('there is no secret db (no such file in --secrets-dir)')
  })
})

describe('the values of a task', () => {
  const valuesOf = (names: Parameters<typeof secretValues>[1]) =>
    secretValues(new SecretsDirectory(path), names, { type: 'runtime' })

  test('are texts without the last line break in variables, and bytes as they are in files', () => {
    put('pem', 'a\nb\r\n')
    put('bytes', Buffer.from([0, 255, 10]))
    const { variables, files } = valuesOf({ __proto__x: 'pem', B: { name: 'bytes', file: './x//y' } })
    expect(variables).toEqual({ __proto__x: 'a\nb' })
    expect(files).toEqual([{ variable: 'B', names: ['x', 'y'], value: Buffer.from([0, 255, 10]) }])
  })

  test('a variable of any name is one', () => {
    put('token')
    const { variables } = valuesOf(JSON.parse('{"__proto__": "token", "constructor": "token"}'))
    expect(Object.entries(variables)).toEqual([
      ['__proto__', 'value'],
      ['constructor', 'value'],
    ])
  })

  test('have a size together', () => {
    put('large', Buffer.alloc(MAX_SECRET_BYTES, 1))
    const files = (count: number) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, i) => [`F${i}`, { name: 'large', file: `f${i}`, mask: false }]),
      )
    expect(valuesOf(files(4)).files.length).toBe(4)
    expect(() => valuesOf(files(5))).toThrow(
      new SecretFault(`secrets.F4: the secrets of a task have at most ${MAX_TASK_SECRETS_BYTES} bytes together`),
    )
  })
})
