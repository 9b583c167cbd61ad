/**
 * Goal: a caller reads the files of a task over HTTP, whole or in parts, and nothing outside of its workspace, whatever the
 * task puts there. Method: tasks that make files, links, pipes and races; the built service is asked for each.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DirectoryListing } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused, script } from '../support/runtime-tasks.ts'
import { startTokenRuntime, WITH_TOKEN } from '../support/token-runtime.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

const SECRET = 'what nobody may read'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime()
  writeFileSync(join(runtime.dataDir, 'secret'), SECRET)
  const made = `mkdir -p dist/deep 'a b' && printf 0123456789 > dist/ten && : > dist/empty && echo deep > dist/deep/file
    echo spaced > 'a b/ü%?#' && ln -s ten dist/link && ln -s dist linked && ln -s / root && mkfifo pipe
    ln -s ${runtime.dataDir}/secret secret && head -c 3000000 /dev/zero | tr '\\0' x > large`
  expect(await runtime.run({ task_id: 'made', ...script(made) })).toMatchObject({ status: 'success' })
})
afterAll(() => runtime.dispose())

const read = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  runtime.fetch(`/api/v1/tasks/made/files${path}`, { headers, method })
const listed = async (path: string) => (await (await read(path)).json()) as DirectoryListing

describe('a file', () => {
  test('comes as bytes that no browser interprets', async () => {
    const response = await read('/dist/ten')
    expect(response.status).toBe(200)
    expect(await response.text()).toBe('0123456789')
    expect(response.headers.get('content-type')).toBe('application/octet-stream')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('x-file-bytes')).toBe('10')
    expect(response.headers.get('accept-ranges')).toBe('bytes')
    expect(response.headers.get('x-trace-id')).not.toBeNull()
  })

  test.each([
    ['/dist/empty', ''],
    ['/dist/deep/file', 'deep\n'],
    ['/a%20b/%C3%BC%25%3F%23', 'spaced\n'],
  ])('%s has its content', async (path, content) => {
    expect(await (await read(path)).text()).toBe(content)
  })

  test('that is large comes whole', async () => {
    const response = await read('/large')
    expect(response.headers.get('x-file-bytes')).toBe('3000000')
    expect(await response.text()).toBe('x'.repeat(3_000_000))
  })

  test('comes in parts', async () => {
    for (const [range, content, of] of [
      ['bytes=2-4', '234', 'bytes 2-4/10'],
      ['bytes=7-', '789', 'bytes 7-9/10'],
      ['bytes=-2', '89', 'bytes 8-9/10'],
    ] as const) {
      const response = await read('/dist/ten', { range })
      expect([response.status, await response.text()]).toEqual([206, content])
      expect(response.headers.get('content-range')).toBe(of)
      expect(response.headers.get('x-file-bytes')).toBe('10')
    }
    expect((await read('/dist/ten', { range: 'bytes=0-1,3-4' })).status).toBe(200)
    expect((await read('/dist/ten', { range: 'bytes=0-1', 'if-range': '"x"' })).status).toBe(200)
  })

  test('has no part behind its end', async () => {
    const response = await read('/dist/ten', { range: 'bytes=10-' })
    expect(response.headers.get('content-range')).toBe('bytes */10')
    expect(await refused(response)).toEqual([416, 'invalid_input', 'no such part of dist/ten: it has 10 bytes'])
  })

  test('answers HEAD with its size', async () => {
    const response = await read('/dist/ten', {}, 'HEAD')
    expect([response.status, response.headers.get('x-file-bytes'), await response.text()]).toEqual([200, '10', ''])
  })

  test('is not read to answer HEAD', async () => {
    const id = (await runtime.runScript('truncate -s 500000000 sparse')).task_id
    const bytesRead = () => Number(/^rchar: (\d+)/.exec(readFileSync(`/proc/${runtime.process.pid}/io`, 'utf8'))?.[1])
    const before = bytesRead()
    const response = await runtime.fetch(`/api/v1/tasks/${id}/files/sparse`, { method: 'HEAD' })
    expect([response.status, response.headers.get('x-file-bytes')]).toEqual([200, '500000000'])
    expect(bytesRead() - before).toBeLessThan(100_000_000)
  })

  test('that becomes shorter meanwhile does not end as if it were whole', async () => {
    const { task_id, artifacts } = await runtime.runScript('truncate -s 500000000 sparse')
    using client = await RawClient.connect(runtime)
    client.send(`GET /api/v1/tasks/${task_id}/files/sparse HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    await until(
      () => client.body, // the status line comes before the first part of the file is read
      (body) => body !== '',
    )
    client.pause() // fetch would read on while this thread is held up
    truncateSync(join(artifacts.task_dir, 'workspace', 'sparse'), 1)
    client.resume()
    await client.closed
    expect(client.received).toStartWith('HTTP/1.1 200 ')
    expect(client.received.toLowerCase()).toContain('\r\ntransfer-encoding: chunked\r\n')
    expect(client.received).not.toEndWith('\r\n0\r\n\r\n')
  })

  test.skipIf(Bun.which('perl') === null)('with a lease is refused at once, and the service goes on', async () => {
    const lease =
      '$SIG{IO} = "IGNORE"; open(F, ">", "leased"); fcntl(F, 1024, 1) or exit 3; open(R, ">", "ready"); sleep 600'
    const id = await runtime.submit(command('perl', '-e', lease))
    const status = async (name: string) => (await runtime.fetch(`/api/v1/tasks/${id}/files/${name}`)).status
    await until(() => status('ready'), 200)
    expect(await refused(await runtime.fetch(`/api/v1/tasks/${id}/files/leased`))).toEqual([
      409,
      'conflict',
      'a program has a lease on this file: try again in a minute: leased',
    ])
    await runtime.kill(id)
    await runtime.ended(id)
  })

  test('of a task that runs comes as it is now', async () => {
    const id = await runtime.script('echo so far > file; sleep 600')
    const now = async () => await (await runtime.fetch(`/api/v1/tasks/${id}/files/file`)).text()
    expect(await until(now, (text) => text === 'so far\n')).toBe('so far\n')
    await runtime.kill(id)
    await runtime.ended(id)
  })
})

describe('a directory', () => {
  test('is listed by name, with types and sizes', async () => {
    expect(await listed('/dist')).toEqual({
      path: 'dist',
      entries: [
        { name: 'deep', type: 'directory' },
        { name: 'empty', type: 'file', size: 0 },
        { name: 'link', type: 'symlink' },
        { name: 'ten', type: 'file', size: 10 },
      ],
      truncated: false,
    })
    expect(await listed('/dist/')).toEqual(await listed('/dist'))
  })

  test('is the workspace itself without a path', async () => {
    const { path, entries } = await listed('')
    expect(path).toBe('')
    expect(entries.map(({ name, type }) => `${name} ${type}`)).toEqual([
      ...['a b directory', 'dist directory', 'large file', 'linked symlink', 'pipe other', 'root symlink'],
      'secret symlink',
    ])
    expect(await listed('/')).toEqual(await listed(''))
  })

  test('with very many entries is cut off', async () => {
    const id = (await runtime.runScript('seq 1 1500 | xargs touch')).task_id
    const { entries, truncated } = await runtime.json<DirectoryListing>(`/api/v1/tasks/${id}/files`)
    expect([entries.length, truncated]).toEqual([1_000, true])
  })
})

describe('nothing outside of the workspace', () => {
  test.each(['/secret', '/root', '/linked', '/dist/link'])('comes through the symlink %s', async (path) => {
    expect((await refused(await read(path))).slice(0, 2)).toEqual([404, 'not_found'])
  })

  test.each([
    '/root/etc/passwd',
    '/linked/ten',
    '/secret/x',
    '/dist/ten/x',
    '/none',
    '/dist/none',
    `/${'x'.repeat(300)}`,
  ])('is found below %s', async (path) => {
    expect((await refused(await read(path))).slice(0, 2)).toEqual([404, 'not_found'])
  })

  test.each([
    ...['/../stdout.log', '/%2e%2e/stdout.log', '/..%2fstdout.log', '/dist/%2E./ten', '/dist/../../request.json'],
    ...['/dist//ten', '/dist%2Ften', '/dist%5c..%5cten', '/x%00y', '//dist/ten', '/..'],
  ])('has a path like %s', async (path) => {
    using client = await RawClient.connect(runtime)
    client.send(`GET /api/v1/tasks/made/files${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    await client.closed
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(client.received) ?? []
    expect(['400', '404']).toContain(status!)
    expect(client.received).not.toContain('0123456789')
  })

  test('comes from a pipe, nor does the service wait for one', async () => {
    expect((await refused(await read('/pipe'))).slice(0, 2)).toEqual([404, 'not_found'])
  })

  test('comes from a workspace that was replaced by a link', async () => {
    const id = (await runtime.runScript('cd ..; mv workspace away; ln -s / workspace')).task_id
    for (const path of ['', '/etc', '/etc/passwd']) {
      expect((await runtime.fetch(`/api/v1/tasks/${id}/files${path}`)).status).toBe(404)
    }
  })

  test('comes in a race: a directory that becomes a link and back', async () => {
    const id = await runtime.script(
      `mkdir real; echo mine > real/secret; ln -s ${runtime.dataDir} link; mv real dir; echo > ready
      while :; do mv dir real; mv link dir; mv dir link; mv real dir; done`,
    )
    const path = `/api/v1/tasks/${id}/files`
    await until(async () => (await runtime.fetch(`${path}/ready`)).status, 200)
    const seen = new Set<string>()
    for (let i = 0; i < 2_000; i++) {
      const response = await runtime.fetch(`${path}/dir/secret`)
      seen.add(response.status === 200 ? await response.text() : String(response.status))
      if (response.status !== 200) await response.text()
    }
    await runtime.kill(id)
    await runtime.ended(id)
    expect(seen.has(SECRET)).toBe(false)
    expect([...seen].toSorted()).toEqual(['404', 'mine\n'])
  })
})

test('an unknown task has no files', async () => {
  expect(await refused(await runtime.fetch('/api/v1/tasks/none/files/x'))).toEqual([
    404,
    'not_found',
    'task not found: none',
  ])
})

test('files need the token', async () => {
  await using service = await startTokenRuntime()
  expect((await service.fetch('/api/v1/tasks/none/files/x')).status).toBe(401)
  expect((await service.fetch('/api/v1/tasks/none/files/x', { headers: WITH_TOKEN })).status).toBe(404)
})

test('a caller that leaves in the middle leaves no open file behind', async () => {
  const id = (await runtime.runScript('head -c 200000000 /dev/zero > huge')).task_id
  for (let i = 0; i < 20; i++) {
    const response = await runtime.fetch(`/api/v1/tasks/${id}/files/huge`)
    const reader = response.body!.getReader()
    await reader.read()
    await reader.cancel()
  }
  const descriptors = `/proc/${runtime.process.pid}/fd`
  const held = () => readdirSync(descriptors).filter((fd) => targetOf(join(descriptors, fd)).endsWith('/huge')).length
  expect(await until(held, (count) => count === 0)).toBe(0)
})

function targetOf(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return '' // closed by now
  }
}
