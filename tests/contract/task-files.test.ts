/**
 * The files of runtime tasks through control: lists, bytes in parts, directories as tar, and what is refused. Against the
 * built services. Source: docs/http.md, "Read files".
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_FILE_TEXT_BYTES } from '../../control/mcp-server/tools/get-task-file.ts'
import type { TaskFileListing } from '../../shared/contract/task-files.ts'
import { startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { startPool } from '../support/runtime-pool.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const LONG = 'x'.repeat(120)

let pair: Pair
let graphId: string
beforeAll(async () => {
  pair = await startPair()
  const made = `mkdir -p dist/deep 'a b' && printf 0123456789 > dist/ten && echo deep > dist/deep/${LONG} && chmod 755 dist/ten
    echo '<script>' > 'a b/ü%?#.html' && : > empty && ln -s / root && ln -s /etc/passwd dist/link && mkfifo pipe`
  const { graph_id } = await pair.control.submit([
    { id: 'made', type: 'runtime.script', params: { script: made } },
    {
      id: 'kept',
      type: 'runtime.script',
      params: { script: 'mkdir out; echo 1 > out/a; echo 2 > b', outputs: ['out/*'] },
    },
    { id: 'again', type: 'runtime.script', params: { script: 'echo $TASKMILL_TASK > id; exit 1' }, retry: 1 },
    { id: 'local', type: 'noop' },
    { id: 'later', type: 'runtime.script', params: { script: 'true' }, depends_on: ['again'] },
  ])
  graphId = graph_id
  await pair.control.allEnded()
})
afterAll(() => pair[Symbol.asyncDispose]())

const read = (path: string, init: RequestInit = {}) => pair.control.fetch(`/tasks/${path}`, init)
const listed = async (path: string) => (await (await read(path)).json()) as TaskFileListing
async function refused(path: string, init: RequestInit = {}): Promise<[number, string]> {
  const response = await read(path, init)
  return [response.status, ((await response.json()) as { error: string }).error]
}

describe('a list', () => {
  test('has the entries of a directory, by name', async () => {
    expect(await listed('made/files')).toEqual({
      ...{ attempt: 1, path: '', truncated: false },
      entries: [
        { name: 'a b', type: 'directory' },
        { name: 'dist', type: 'directory' },
        { name: 'empty', type: 'file', size: 0 },
        { name: 'pipe', type: 'other' },
        { name: 'root', type: 'symlink' },
      ],
    })
    const { path, entries } = await listed('made/files?path=dist/deep/')
    expect([path, entries]).toEqual(['dist/deep', [{ name: LONG, type: 'file', size: 5 }]])
    const inGraph = await pair.control.fetch(`/graphs/${graphId}/tasks/made/files?path=dist/deep`)
    expect((await inGraph.json()) as unknown).toEqual({ attempt: 1, path, entries, truncated: false })
  })

  test('has only what outputs kept', async () => {
    expect((await listed('kept/files')).entries).toEqual([{ name: 'out', type: 'directory' }])
    expect((await refused('kept/files/b'))[0]).toBe(404)
  })
})

describe('a file', () => {
  test('comes as an attachment that no browser interprets', async () => {
    const response = await read('made/files/a%20b/%C3%BC%25%3F%23.html')
    expect([response.status, await response.text()]).toEqual([200, '<script>\n'])
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': "attachment; filename*=UTF-8''%C3%BC%25%3F%23.html",
      'content-security-policy': "sandbox; default-src 'none'",
      ...{ 'x-content-type-options': 'nosniff', 'x-file-bytes': '9', 'x-task-attempt': '1', 'accept-ranges': 'bytes' },
    })
  })

  test('comes in parts, as long as it is the same', async () => {
    const whole = await read('made/files/dist/ten')
    const etag = whole.headers.get('etag')!
    expect([await whole.text(), etag]).toEqual(['0123456789', expect.stringMatching(/^"\S+"$/)])
    const part = await read('made/files/dist/ten', { headers: { range: 'bytes=7-', 'if-range': etag } })
    expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([206, '789', 'bytes 7-9/10'])
    const other = await read('made/files/dist/ten', { headers: { range: 'bytes=7-', 'if-range': '"other"' } })
    expect([other.status, await other.text()]).toEqual([200, '0123456789'])
    const none = await read('made/files/dist/ten', { headers: { range: 'bytes=10-' } })
    expect([none.status, none.headers.get('content-range')]).toEqual([416, 'bytes */10'])
    const head = await read('made/files/dist/ten', { method: 'HEAD' })
    expect([head.status, head.headers.get('etag'), head.headers.get('x-file-bytes')]).toEqual([200, etag, '10'])
  })

  test('of a task that runs comes as it is now', async () => {
    await pair.script('runs', 'mkdir d; echo so far > file; sleep 600')
    await pair.there('runs', ({ status }) => status === 'running')
    await until(
      async () => (await read('runs/files/file')).text(),
      (text) => text === 'so far\n',
    )
    expect((await refused('runs/files/d'))[0]).toBe(409)
    await pair.control.fetch('/tasks/runs/cancel', { method: 'POST' })
    await pair.control.ended('runs')
  })

  test('comes from an earlier attempt', async () => {
    const ids = await Promise.all(
      ['?attempt=1', '?attempt=2', ''].map(async (query) => (await read(`again/files/id${query}`)).text()),
    )
    expect(ids[0]).not.toBe(ids[1]!)
    expect(ids[2]).toBe(ids[1]!)
    expect(await refused('again/files?attempt=3')).toEqual([404, 'task again has had 2 attempts'])
  })
})

test.each([
  ['dist', 'dist'],
  ['', 'workspace'],
])('the directory "%s" comes as a tar', async (path, name) => {
  const response = await read(`made/files/${path}`)
  expect(response.headers.get('content-type')).toBe('application/x-tar')
  expect(response.headers.get('content-disposition')).toBe(`attachment; filename*=UTF-8''${name}.tar`)
  const head = await read(`made/files/${path}`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/x-tar'])
  using temp = tempDir()
  await Bun.write(join(temp.path, 'a.tar'), response)
  mkdirSync(join(temp.path, 'to'))
  const tar = Bun.spawnSync(['tar', '-xf', '../a.tar'], { cwd: join(temp.path, 'to') })
  expect([tar.exitCode, tar.stderr.toString()]).toEqual([0, ''])
  const top = join(temp.path, 'to', name)
  const dist = path === '' ? join(top, 'dist') : top
  expect(readFileSync(join(dist, 'ten'), 'utf8')).toBe('0123456789')
  expect(statSync(join(dist, 'ten')).mode & 0o777).toBe(0o755)
  expect(readFileSync(join(dist, 'deep', LONG), 'utf8')).toBe('deep\n')
  expect(readdirSync(dist).toSorted()).toEqual(['deep', 'ten'])
})

test('a directory comes in parts, as long as its files are the same', async () => {
  const whole = await read('made/files/dist')
  const etag = whole.headers.get('etag')!
  const bytes = Buffer.from(await whole.arrayBuffer())
  const size = bytes.length
  expect([etag, whole.headers.get('x-file-bytes')]).toEqual([expect.stringMatching(/^"[0-9a-f]{32}"$/), String(size)])
  const head = await read('made/files/dist', { method: 'HEAD' })
  const told = ['etag', 'x-file-bytes', 'accept-ranges'].map((name) => head.headers.get(name))
  expect([head.status, ...told]).toEqual([200, etag, String(size), 'bytes'])
  for (const [range, from, to] of [
    ['0-0', 0, 1],
    [`700-${size}`, 700, size],
    ['-1030', size - 1_030, size],
    ['512-1535', 512, 1_536],
  ] as const) {
    const part = await read('made/files/dist', { headers: { range: `bytes=${range}`, 'if-range': etag } })
    const what = ['content-type', 'content-range', 'etag'].map((name) => part.headers.get(name))
    expect([part.status, ...what]).toEqual([206, 'application/x-tar', `bytes ${from}-${to - 1}/${size}`, etag])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from, to))).toBe(true)
  }
  const none = await read('made/files/dist', { headers: { range: `bytes=${size}-`, 'if-range': etag } })
  expect([none.status, none.headers.get('content-range')]).toEqual([416, `bytes */${size}`])
  const other = await read('made/files/dist', { headers: { range: 'bytes=7-', 'if-range': '"other"' } })
  expect([other.status, (await other.arrayBuffer()).byteLength]).toEqual([200, size])
  const placed = await read('made/files/dist/deep', { method: 'HEAD' })
  expect(placed.headers.get('etag')).not.toBe(etag)
})

test('a directory that has changed comes whole, with another etag', async () => {
  await pair.script('changes', 'mkdir d; echo one > d/a')
  const { handle_id } = await pair.control.ended('changes')
  const etag = (await read('changes/files/d', { method: 'HEAD' })).headers.get('etag')!
  writeFileSync(join(pair.runtime.dataDir, 'tasks', handle_id!, 'workspace/d/a'), 'eno\n')
  const part = await read('changes/files/d', { headers: { range: 'bytes=512-', 'if-range': etag } })
  expect(part.status).toBe(200)
  expect(part.headers.get('etag')).not.toBe(etag)
  expect(Buffer.from(await part.arrayBuffer()).toString('latin1', 1_024, 1_028)).toBe('eno\n')
})

describe('nothing comes', () => {
  test.each(['root', 'root/etc/passwd', 'dist/link', 'pipe', 'none', 'dist/ten/x', 'dist%2F..%2F..%2Fstdout.log'])(
    'for %s',
    async (path) => {
      expect([400, 404]).toContain((await refused(`made/files/${path}`))[0])
    },
  )

  test('for a path or an attempt that is none', async () => {
    expect(await refused('made/files?path=../..')).toEqual([400, 'invalid path: path cannot contain parent traversal'])
    expect((await refused('made/files?attempt=0'))[0]).toBe(400)
    expect((await refused('made/files?path=dist/ten'))[0]).toBe(400)
  })

  test('from a task without files, with the reason', async () => {
    const ofType =
      'task local has no files: it is of type os, not runtime (run it as runtime.command or runtime.script)'
    expect(await refused('local/files')).toEqual([409, ofType])
    expect(await refused('later/files')).toEqual([409, 'task later has not started, so it has no files yet'])
    expect(await refused('nobody/files')).toEqual([404, 'task not found: nobody'])
  })

  test('from a task that took over an outcome, whose source is named', async () => {
    const { control } = pair
    const { graph_id } = await control.submit([
      { id: 'good', type: 'runtime.script', params: { script: 'true' } },
      { id: 'bad', type: 'runtime.script', params: { script: 'false' } },
    ])
    await control.ended('good')
    await control.ended('bad')
    expect((await control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST' })).status).toBe(202)
    expect(await refused('good/files')).toEqual([
      409,
      `task good took over the outcome of task good of graph ${graph_id}, which has the files`,
    ])
    await control.ended('bad')
  })

  test('without the token', async () => {
    const env = { SERVICE_TOKEN: 'sesame' }
    await using control = await startControl({ env })
    for (const path of ['/tasks/a/files', '/tasks/a/files/x', '/graphs/g/tasks/a/files/x']) {
      expect((await control.fetch(path)).status).toBe(401)
      expect((await control.fetch(path, { headers: { authorization: 'Bearer sesame' } })).status).toBe(404)
    }
  })
})

test('an agent gets text, lists and links', async () => {
  const script = `mkdir d; printf hi > text; : > empty; printf '\\0' > binary; head -c ${MAX_FILE_TEXT_BYTES} /dev/zero | tr '\\0' x > most
    head -c ${MAX_FILE_TEXT_BYTES + 1} /dev/zero | tr '\\0' x > 'more ü'`
  await pair.script('agent', script)
  await pair.control.ended('agent')
  await using mcp = await connectClient(pair.control.url)
  const get = async (path?: string) => (await mcp.call('get_task_file', { task_id: 'agent', path })).data
  const known = { attempt: 1 }
  expect(await get('text')).toEqual({ ...known, bytes: 2, text: 'hi' })
  expect(await get('empty')).toEqual({ ...known, bytes: 0, text: '' })
  expect(await get('most')).toMatchObject({ text: 'x'.repeat(MAX_FILE_TEXT_BYTES) })
  expect(await get()).toEqual({ ...known, entries: ['binary', 'd/', 'empty', 'more ü', 'most', 'text'] })
  for (const path of ['binary', 'more ü']) {
    const { link, next, ...more } = await get(path)
    expect([next, 'text' in more]).toEqual([`save it with: taskmill cp "agent:${path}" DEST`, false])
    expect((await pair.control.fetch(link as string)).headers.get('x-file-bytes')).toBe(String(more.bytes))
  }
  expect(await mcp.call('get_task_file', { task_id: 'local' })).toMatchObject({ isError: true })
})

test('files that the runtime service has removed, or cannot give now, are missed with the remedy', async () => {
  await using pool = await startPool({ one: {} })
  const { control } = pool
  await control.submit([{ id: 'a', type: 'runtime.script', params: { script: 'echo hi > f' } }])
  const { handle_id } = await control.ended('a')
  const asked = async () => {
    const response = await control.fetch('/tasks/a/files/f')
    return [response.status, await response.text()]
  }
  expect(await asked()).toEqual([200, 'hi\n'])
  await pool.runtime('one').fetch(`/api/v1/tasks/${handle_id}`, { method: 'DELETE' })
  expect(await asked()).toEqual([404, expect.stringMatching(/runtime one no longer has .*--result-retention-secs/)])
  await pool.runtime('one').stop('SIGKILL')
  expect(await asked()).toEqual([
    503,
    expect.stringMatching(/cannot read the files of task a from runtime one: .*refused/),
  ])
})
