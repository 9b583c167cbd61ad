/**
 * Goal: files of a task get to another runtime service whole, or not at all, whatever a caller sends. Method: two built
 * services; bundles of one are staged at the other and taken by its tasks; raw requests with faults.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { BundleSummary } from '../../shared/contract/file-bundles.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script } from '../support/runtime-tasks.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { startTokenRuntime, WITH_TOKEN } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

let source: Runtime
let target: Runtime
beforeAll(async () => {
  source = await startRuntime()
  target = await startRuntime({ flags: ['--max-input-bytes', '2000000', '--max-input-files', '20'] })
  const made = `mkdir -p d/deep d/empty && printf one > d/a && chmod 751 d/a && printf two > d/deep/b && ln -s / d/link
    head -c 3000000 /dev/zero > large; mkdir many; cd many; seq 1 30 | xargs touch`
  expect(await source.run({ task_id: 'made', ...script(made) })).toMatchObject({ status: 'success' })
})
afterAll(async () => {
  await source.dispose()
  await target.dispose()
})

const bundleOf = (file: string, only = '', runtime = source, id = 'made') =>
  runtime.fetch(`/api/v1/tasks/${id}/bundle?${new URLSearchParams({ file, ...(only !== '' && { only }) })}`)
const bytesOf = async (file: string) => new Uint8Array(await (await bundleOf(file)).arrayBuffer())
const sha256 = (bytes: Uint8Array | string) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
const stage = (hash: string, body: string | Uint8Array<ArrayBuffer> | null = null, runtime = target) =>
  runtime.fetch(`/api/v1/runtime/files/${hash}`, { method: 'PUT', body })
const errorOf = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { code: string; message: string; details: unknown } }
  return [answer.status, error.code, error.message]
}
/** What the target has in its staging area. */
const staged = ({ dataDir }: Runtime = target) => {
  const path = join(dataDir, 'staged')
  return existsSync(path) ? readdirSync(path) : []
}

describe('a bundle', () => {
  test('has a size and a hash, and brings a directory to a task elsewhere as a copy would', async () => {
    const bytes = await bytesOf('d')
    expect(await (await bundleOf('d', 'size')).json()).toEqual({ bytes: bytes.length, files: 2 })
    const hash = sha256(bytes)
    expect(await (await bundleOf('d', 'digest')).json()).toEqual({ bytes: bytes.length, files: 2, sha256: hash })
    const missing = await target.fetch(`/api/v1/runtime/files/${hash}`)
    expect(await errorOf(missing)).toEqual([404, 'not_found', `there is no staged bundle ${hash}`])
    const answers = [
      await stage(hash, bytes),
      await stage(hash, bytes),
      await target.fetch(`/api/v1/runtime/files/${hash}`),
    ]
    expect(answers.map(({ status }) => status)).toEqual([201, 200, 200])
    for (const answer of answers) expect(await answer.json()).toEqual({ sha256: hash, bytes: bytes.length })
    const text = 'find in | sort; stat -c %a in/d/a; cat in/d/deep/b'
    const moved = await target.run({ ...script(text), inputs: { 'in/d': { staged: hash } } })
    expect(moved).toMatchObject({ status: 'success' })
    expect(moved.stdout).toBe('in\nin/d\nin/d/a\nin/d/deep\nin/d/deep/b\nin/d/empty\n751\ntwo')
    const copied = await source.run({ ...script(text), inputs: { 'in/d': { task_id: 'made', file: 'd' } } })
    const { task_id: _, file: __, ...same } = copied.inputs!['in/d']!
    expect(moved.inputs).toEqual({ 'in/d': { staged: hash, ...same } })
    expect(moved.stdout).toBe(copied.stdout!)
    const other = { 'in/d': { staged: hash, sha256: '0'.repeat(64) } }
    expect((await target.run({ ...script('true'), inputs: other })).error).toEqual({
      code: 'invalid_input',
      message: `inputs."in/d": the staged bundle ${hash} has another content: its sha256 is ${same.sha256}`,
    })
  })

  test.each([
    ['none', 400, 'none of task made is not there (a task with outputs keeps only what they match)'],
    ['d/link', 400, '"d/link" of task made is a symlink, which is not followed'],
    ['../made', 400, 'file cannot contain parent traversal'],
    ['/etc/passwd', 400, 'file must be relative to the workspace'],
  ])('of %s is refused', async (file, status, message) => {
    for (const only of ['', 'size', 'digest']) {
      expect(await errorOf(await bundleOf(file, only))).toEqual([status, 'invalid_input', message])
    }
  })

  test('of a task that is not there or runs is refused', async () => {
    expect(await errorOf(await bundleOf('d', '', source, 'none'))).toEqual([
      ...[404, 'not_found'],
      'there is no task none, or it was removed with its files: run it again',
    ])
    const id = await source.script('sleep 60')
    expect(await errorOf(await bundleOf('.', 'digest', source, id))).toEqual([
      ...[409, 'conflict'],
      `task ${id} has not ended`,
    ])
    await source.kill(id)
    const wrong = await bundleOf('d', 'all')
    expect(await errorOf(wrong)).toEqual([400, 'invalid_input', 'invalid only "all": expected size or digest'])
  })

  test('with too much is refused where it comes from, where it goes, and when a task takes it', async () => {
    await using small = await startRuntime({ flags: ['--max-input-bytes', '1000', '--max-input-files', '5'] })
    const id = await small.script('mkdir d; cd d; seq 1 9 | xargs touch; head -c 2000 /dev/zero > ../large')
    await small.ended(id)
    for (const [file, limit] of [
      ['d', '5 files and directories (--max-input-files)'],
      ['large', '1000 bytes (--max-input-bytes)'],
    ]) {
      const [status, , message] = await errorOf(await bundleOf(file!, '', small, id))
      expect([status, message]).toEqual([400, expect.stringContaining(`may have ${limit}`)])
    }
    const bytes = await bytesOf('large')
    const [status, code, message] = await errorOf(await stage(sha256(bytes), bytes))
    expect([status, code]).toEqual([413, 'payload_too_large'])
    expect(message).toContain('(--max-input-bytes)')
    expect(staged().filter((name) => name.endsWith('.part'))).toEqual([])
    const many = await bytesOf('many')
    expect((await stage(sha256(many), many)).status).toBe(201)
    const failed = await target.run({ ...script('true'), inputs: { d: { staged: sha256(many) } } })
    expect(failed.error).toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('(--max-input-files)'),
    })
  })
})

describe('what is staged is refused', () => {
  test.each([
    ['a path', '..%2f..%2fetc'],
    ['a short hash', 'abc'],
    ['capital digits', 'A'.repeat(64)],
  ])('under %s', async (_, hash) => {
    expect((await stage(hash, 'x')).status).toBe(400)
    expect((await target.fetch(`/api/v1/runtime/files/${hash}`)).status).toBe(400)
  })

  test('with another hash, or without a body', async () => {
    const hash = sha256('one')
    for (const body of ['two', null]) {
      expect(await errorOf(await stage(hash, body))).toEqual([
        ...[400, 'invalid_input'],
        `the body has another hash than its address: its sha256 is ${sha256(body ?? '')}`,
      ])
    }
    expect(staged()).not.toContain(hash)
  })

  test('when a task takes it, if it is no bundle or not there', async () => {
    const inputs = (hash: string) => ({ ...script('true'), inputs: { a: { staged: hash } } })
    const [status, , message] = await refused(await target.post(inputs(sha256('none'))))
    const path = `/api/v1/runtime/files/${sha256('none')}`
    expect([status, message]).toEqual([
      400,
      `inputs.a: there is no staged bundle ${sha256('none')}: send it first (PUT ${path})`,
    ])
    const text = 'taskmill-bundle 1\ndirectory 755 \0file 644 3 ../../../x\0oneend\0'
    expect((await stage(sha256(text), text)).status).toBe(201)
    expect((await target.run(inputs(sha256(text)))).error).toEqual({
      code: 'invalid_input',
      message: `inputs.a: the staged bundle ${sha256(text)} is no valid bundle: it has a name that is none`,
    })
  })

  test.each([
    ['two lengths', 'Content-Length: 3\r\nContent-Length: 4\r\n', 'onex', /^HTTP\/1.1 400/],
    [
      'a length and chunks',
      'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n',
      '3\r\none\r\n0\r\n\r\n',
      /^HTTP\/1.1 400/,
    ],
    ['a length that is none', 'Content-Length: -3\r\n', 'one', /^HTTP\/1.1 400/],
    ['broken chunks', 'Transfer-Encoding: chunked\r\n', '3\r\noneXX\r\n', /^(HTTP\/1.1 400|$)/],
  ])('with %s', async (_, headers, body, answer) => {
    using client = await RawClient.connect(target)
    client.send(`PUT /api/v1/runtime/files/${sha256('one')} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n${body}`)
    await client.closed
    expect(client.received).toMatch(answer)
    expect(staged()).not.toContain(sha256('one'))
  })

  test('with a body that breaks off, of which nothing is left', async () => {
    const client = await RawClient.connect(target)
    client.send(
      `PUT /api/v1/runtime/files/${sha256('half')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\nhalf`,
    )
    await until(staged, (names) => names.some((name) => name.endsWith('.part')))
    client[Symbol.dispose]()
    await until(staged, (names) => names.every((name) => !name.endsWith('.part')))
    expect(staged()).not.toContain(sha256('half'))
  })

  test('without the token', async () => {
    await using runtime = await startTokenRuntime()
    const path = `/api/v1/runtime/files/${sha256('x')}`
    for (const method of ['GET', 'PUT']) expect((await runtime.fetch(path, { method })).status).toBe(401)
    expect((await runtime.fetch('/api/v1/tasks/x/bundle')).status).toBe(401)
    expect((await runtime.fetch(path, { headers: WITH_TOKEN })).status).toBe(404)
  })
})

test('a half bundle is gone after a kill, and unused ones go in time', async () => {
  await using first = await startRuntime()
  const bytes = await bytesOf('d')
  expect((await stage(sha256(bytes), bytes, first)).status).toBe(201)
  using client = await RawClient.connect(first)
  client.send(`PUT /api/v1/runtime/files/${sha256('x')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx`)
  await until(() => staged(first).length, 2)
  await first.stop('SIGKILL')
  const again = (flags: string[] = []) => startRuntime({ dataDir: first.dataDir, flags })
  {
    await using second = await again()
    await until(() => staged(second).length, 1)
    expect((await stage(sha256(bytes), null, second)).status).toBe(200)
  }
  await using third = await again(['--staged-retention-secs', '1', '--gc-interval-ms', '50'])
  await until(() => staged(third), [])
  const answer = await third.fetch(`/api/v1/runtime/files/${sha256(bytes)}`)
  expect(answer.status).toBe(404)
})

test('past --max-staged-bytes a bundle is refused while others were just used', async () => {
  await using runtime = await startRuntime({ flags: ['--max-staged-bytes', '200'] })
  const bytes = await bytesOf('d')
  expect((await stage(sha256(bytes), bytes, runtime)).status).toBe(201)
  const refusal = await stage(sha256('x'.repeat(150)), 'x'.repeat(150), runtime)
  expect(await errorOf(refusal)).toEqual([
    ...[429, 'resource_limit_exceeded'],
    'there is no room for the bundle: all staged files may have 200 bytes (--max-staged-bytes)',
  ])
  expect(staged(runtime)).toEqual([sha256(bytes)])
})

test.skipIf(!canMount)('a full disk is answered with 503, and nothing is left', async () => {
  using temp = tempDir()
  using disk = smallDisk(join(temp.path, 'disk'), 32 * 1024 ** 2)
  await using runtime = await startRuntime({ dataDir: join(disk.path, 'data') })
  const large = Buffer.alloc(40 * 1024 ** 2, 'x')
  const [status, code, message] = await errorOf(await stage(sha256(large), large, runtime))
  expect([status, code]).toEqual([503, 'unavailable'])
  expect(message).toContain('ENOSPC')
  expect(staged(runtime)).toEqual([])
  const bytes = await bytesOf('d')
  expect((await stage(sha256(bytes), bytes, runtime)).status).toBe(201)
})

test('a hash that nobody waits for any more is not computed to its end', async () => {
  const { task_id } = await source.runScript('truncate -s 8G huge')
  const leaving = new AbortController()
  const asked = source.fetch(`/api/v1/tasks/${task_id}/bundle?only=digest`, { signal: leaving.signal })
  const answer = asked.catch((error) => error)
  await source.get(task_id) // the service has read the request before this one
  await until(async () => (await source.fetch(`/api/v1/tasks/${task_id}`, { method: 'DELETE' })).status, 409)
  leaving.abort()
  await answer
  await until(
    () => source.log.map(({ msg }) => msg),
    (texts) => texts.includes('request given up'),
  )
  expect(source.log.map(({ msg }) => msg)).not.toContain('request failed')
})

test('a task that is removed meanwhile, and one whose files are read', async () => {
  const made = await source.run({ task_id: 'held', ...script('head -c 30000000 /dev/zero > large') })
  expect(made.status).toBe('success')
  const answer = await bundleOf('large', '', source, 'held')
  const reader = answer.body!.getReader()
  await reader.read()
  const removed = () => source.fetch('/api/v1/tasks/held', { method: 'DELETE' })
  expect(await errorOf(await removed())).toEqual([
    ...[409, 'conflict'],
    'files of task held are being copied for another runtime service (try again when it has them)',
  ])
  await reader.cancel()
  await until(async () => (await removed()).status, 204)
  expect(
    ((await (await bundleOf('large', 'digest', source, 'held')).json()) as BundleSummary & { error: object }).error,
  ).toMatchObject({
    code: 'not_found',
    details: { field: 'inputs', missing_task: 'held' },
  })
})

const closedBy = [
  ['chmod 000 .', '.', 'all files in the workspace'],
  ['chmod 400 .', '.', 'all files in the workspace'],
  ['chmod 000 d', 'd/in', 'd/in'],
  ['chmod 000 d', '.', 'all files in the workspace'],
  ['chmod 400 d', 'd', 'd'],
  ['chmod 000 d/in', 'd/in', 'd/in'],
] as const

test('of files whose mode forbids the service to read them is refused, in tasks that take them too', async () => {
  await using runtime = await startRuntime({
    ...(process.getuid?.() === 0 ? await asOrdinaryUser() : {}),
    flags: ['--result-retention-secs', '3600'],
  })
  for (const [i, [close, file]] of closedBy.entries()) {
    const id = `closed-${i}`
    const made = `mkdir d && echo in > d/in && echo told && ${close}`
    const task = await runtime.run({ task_id: id, ...script(made) })
    expect(task).toMatchObject({ status: 'success', stdout: 'told\n' })
    for (const only of ['', 'size', 'digest']) {
      const [status, code, message] = await errorOf(await bundleOf(file, only, runtime, id))
      expect([close, file, only, status, code]).toEqual([close, file, only, 400, 'invalid_input'])
      expect(message).toEndWith('cannot be read by the service: its mode forbids that')
    }
    const taking = await runtime.run({ ...script('true'), inputs: { in: { task_id: id, file } } })
    expect(taking).toMatchObject({
      ...{
        status: 'failed',
        error: { code: 'invalid_input', message: expect.stringContaining('its mode forbids that') },
      },
    })
    expect(await (await runtime.fetch(`/api/v1/tasks/${id}/logs?stream=stdout`)).text()).toBe('told\n')
    const removed = await runtime.fetch(`/api/v1/tasks/${id}`, { method: 'DELETE' })
    expect(removed.status).toBe(204)
    await until(() => existsSync(join(runtime.dataDir, 'tasks', id)), false)
  }
})

test('a directory that its task has closed keeps its outputs, and goes by retention', async () => {
  await using runtime = await startRuntime({
    ...(process.getuid?.() === 0 ? await asOrdinaryUser() : {}),
    flags: ['--result-retention-secs', '1', '--gc-interval-ms', '100'],
  })
  const task = await runtime.run({
    ...{ task_id: 'closed', ...script('mkdir -p d/e && echo kept > d/e/a && chmod 000 d/e d .'), outputs: ['d/**'] },
  })
  expect(task).toMatchObject({ status: 'success', artifacts: expect.anything() })
  await until(() => existsSync(join(runtime.dataDir, 'tasks', 'closed')), false)
  expect((await runtime.fetch('/api/v1/tasks/closed')).status).toBe(404)
})
