/** The example executor does what its page says. Method: registered beside others, run by the real scheduler. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileRoot } from '../../control/executors/os/file-root.ts'
import { ChecksumExecutor } from '../../examples/executors/checksum.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { runInProcess } from '../support/in-process.ts'
import { ScriptedExecutor } from '../support/scripted-executor.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

/** Of `abc`, as every description of these algorithms has them. */
const OF_ABC = {
  md5: '900150983cd24fb0d6963f7d28e17f72',
  sha1: 'a9993e364706816aba3e25717850c26c9cd0d89d',
  sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  sha512:
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
}

let temp: TempDir
beforeAll(() => {
  temp = tempDir()
  mkdirSync(join(temp.path, 'root/folder'), { recursive: true })
  writeFileSync(join(temp.path, 'root/abc'), 'abc')
  writeFileSync(join(temp.path, 'root/large'), 'x'.repeat(3_000_000))
  writeFileSync(join(temp.path, 'secret'), 'abc')
})
afterAll(() => temp[Symbol.dispose]())

const checksum = (task: TaskInput) =>
  runInProcess([new ScriptedExecutor(), new ChecksumExecutor(new FileRoot(join(temp.path, 'root')))]).runOne({
    ...{ type: 'checksum', tool_name: 'sha256', ...task },
  })
const failure = (error: unknown, code: string) => ({ status: 'failed', error, runtime: { error: { code } } })

describe('the checksum executor', () => {
  test.each(Object.entries(OF_ABC))('computes %s', async (algorithm, expected) => {
    const task = await checksum({ tool_name: algorithm, params: { path: 'abc', expected } })
    expect(task).toMatchObject({ status: 'success', result: { algorithm, checksum: expected, size: 3 } })
  })

  test('reads files of any size, and takes an expected checksum in capitals', async () => {
    const expected = new Bun.CryptoHasher('sha256').update('x'.repeat(3_000_000)).digest('hex').toUpperCase()
    const task = await checksum({ params: { path: 'large', expected } })
    expect(task).toMatchObject({ status: 'success', result: { size: 3_000_000 }, params: { expected } })
  })

  test('fails where another checksum was expected, and keeps the one there is', async () => {
    const task = await checksum({ tool_name: 'md5', params: { path: 'abc', expected: 'FF' } })
    const error = `abc has the checksum ${OF_ABC.md5}, expected ff`
    expect(task).toMatchObject(failure(error, 'external_failure'))
    expect(task).toMatchObject({ result: { checksum: OF_ABC.md5 } })
  })

  test.each([
    [{ params: {} }, 'path is required', 'invalid_input'],
    [{ params: { path: 'abc', expected: 'xyz' } }, /^parse checksum params: expected: expected hexa/, 'invalid_input'],
    [{ tool_name: 'crc', params: { path: 'abc' } }, /^unknown algorithm "crc" \(supported: md5, /, 'invalid_input'],
    [{ tool_name: null, params: { path: 'abc' } }, 'tool_name is required for type checksum', 'invalid_input'],
    [{ params: { path: 'nowhere' } }, 'checksum nowhere: no such file or directory', 'not_found'],
    [{ params: { path: 'folder' } }, /^folder is not a regular file/, 'external_failure'],
    [{ params: { path: '../secret' } }, 'path escapes the file root', 'denied'],
  ])('fails in plain words: %j', async (task, error, code) => {
    const text = typeof error === 'string' ? error : expect.stringMatching(error)
    expect(await checksum(task)).toMatchObject(failure(text, code))
  })
})
