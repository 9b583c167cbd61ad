/**
 * Goal: what is published works where it is installed. Method: the package is installed from its archive into an empty
 * directory, and used from there by Bun, Node, chromium and the compiler.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../../package.json'
import { packMain } from '../../scripts/release/npm.ts'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { executables, startMill } from '../support/mill.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

const ROOT = dirname(dirname(import.meta.dir))

/** The empty directory, with the package installed. */
let home: TempDir

async function run(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = Bun.spawn([...command], {
    ...{ cwd: home.path, env: testEnvironment({ HOME: home.path, ...env }), stdin: 'ignore' },
    ...{ stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

beforeAll(async () => {
  home = tempDir()
  using packed = tempDir()
  const archive = await packMain(packed.path, [])
  writeFileSync(join(home.path, 'package.json'), '{"name": "user", "type": "module"}')
  const env = { BUN_INSTALL_CACHE_DIR: join(packed.path, 'cache') }
  const installed = await run([process.execPath, 'add', archive], env)
  expect(installed.stderr).not.toContain('error')
  expect(installed.exitCode).toBe(0)
})

afterAll(() => home[Symbol.dispose]())

const inPackage = (...path: string[]) => join(home.path, 'node_modules/taskmill', ...path)

/** Uses the client as any program may; prints one line. */
const PROGRAM = `
import { Taskmill, TaskmillError } from 'taskmill/client'
const mill = new Taskmill()
const graph = await mill.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'noop', params: { message: 'hi' } }, { id: 'b', type: 'shell', params: { command: 'echo', args: ['ü'] } }] }, { idempotencyKey: 'k' })
const events = []
for await (const event of mill.graphEvents(graph)) events.push(event.event)
let log = ''
for await (const { text } of mill.followLog({ ...graph, id: 'b' })) log += text
const tasks = []
for await (const task of mill.graphTasks(graph, { pageSize: 1 })) tasks.push(task.id)
const error = await mill.getTask('none').catch((error) => error)
console.log(JSON.stringify([events.at(-1), log, tasks, error instanceof TaskmillError, error.code]))
`
const PRINTED = '["graph_ended","ü\\n",["a","b"],true,"not_found"]\n'

test('the package has what it needs, and no dependency', () => {
  const found = JSON.parse(readFileSync(inPackage('package.json'), 'utf8'))
  expect(found).toMatchObject({
    ...{ name: 'taskmill', version: manifest.version, type: 'module', sideEffects: false },
    ...{ engines: { node: '>=20' }, repository: manifest.repository },
  })
  expect(Object.keys(found).filter((field) => /dependencies/i.test(field))).toEqual([])
  for (const entry of ['client/entry.js', 'client/entry.d.ts']) {
    expect(importsFrom(entry).filter((path) => !path.startsWith('.'))).toEqual([])
  }
  for (const entry of ['client/testing/entry.js', 'client/testing/entry.d.ts']) {
    expect(importsFrom(entry).filter((path) => !/^(\.|node:|bun$)/.test(path))).toEqual([])
  }
  const types = readFileSync(inPackage('client/contract.d.ts'), 'utf8')
  expect(types).toContain('  /** Id of the task. */\n  readonly id: string\n')
  expect(types).not.toContain('typeof')
  const files = readdirSync(inPackage(), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  for (const { parentPath, name } of files) expect(readFileSync(join(parentPath, name), 'utf8')).not.toContain(ROOT)
  expect(files.length).toBeLessThan(40)
})

/** What a module of the package imports, and what those import. */
function importsFrom(entry: string): string[] {
  const found: string[] = []
  const left = [entry]
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    for (const [, path] of readFileSync(inPackage(file), 'utf8').matchAll(/(?:from|import) ["']([^"']+)["']/g)) {
      found.push(path!)
      const next = join(dirname(file), file.endsWith('.d.ts') ? path!.replace(/\.js$/, '.d.ts') : path!)
      if (path!.startsWith('.') && !left.includes(next)) left.push(next)
    }
  }
  return found
}

test('without a subpath it is the client', async () => {
  const program =
    "import * as whole from 'taskmill'; import * as client from 'taskmill/client'; console.log(whole.Taskmill === client.Taskmill)"
  writeFileSync(join(home.path, 'whole.js'), program)
  expect(await run([process.execPath, 'whole.js'])).toEqual({ exitCode: 0, stdout: 'true\n', stderr: '' })
})

test('in Bun', async () => {
  await using mill = await startMill()
  writeFileSync(join(home.path, 'program.js'), PROGRAM)
  const env = { SERVICE_URL: mill.url, SERVICE_TOKEN: mill.token }
  expect(await run([process.execPath, 'program.js'], env)).toEqual({ exitCode: 0, stdout: PRINTED, stderr: '' })
})

const node = Bun.which('node')

test.skipIf(node === null)(`in Node${node === null ? ' (skipped: node is not here)' : ''}`, async () => {
  await using mill = await startMill()
  writeFileSync(join(home.path, 'program.mjs'), PROGRAM)
  const env = { SERVICE_URL: mill.url, SERVICE_TOKEN: mill.token }
  expect(await run([node!, 'program.mjs'], env)).toEqual({ exitCode: 0, stdout: PRINTED, stderr: '' })
  // The event stream outlasts a restart there, too.
  const watching = `
    import { Taskmill } from 'taskmill/client'
    const mill = new Taskmill()
    const graph = await mill.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'approval', params: { message: '?' } }] })
    console.log(graph.graph_id)
    const events = []
    for await (const event of mill.graphEvents(graph)) events.push(event)
    console.log(events.every(({ previous }, i) => i === 0 || previous === events[i - 1].seq), events.at(-1).state)`
  writeFileSync(join(home.path, 'watching.mjs'), watching)
  const child = Bun.spawn([node!, 'watching.mjs'], {
    ...{ cwd: home.path, env: testEnvironment(env), stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' },
  })
  const lines = child.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  const graph = String((await lines.next()).value).trim()
  await mill.restart()
  await mill.client.approve({ graph_id: graph, id: 'a' }, { who: 'ada' })
  expect((await lines.next()).value).toBe('true success\n')
  expect(await child.exited).toBe(0)
})

test.skipIf(withoutChromium !== undefined)(
  `in a browser${withoutChromium ? ` (skipped: ${withoutChromium})` : ''}`,
  async () => {
    await using mill = await startMill()
    const program = PROGRAM.replace("'taskmill/client'", "'/client/entry.js'")
      .replace('new Taskmill()', 'new Taskmill({ url: location.origin })')
      .replace('console.log(', 'document.title = (')
    // As a proxy would do it that serves the page and passes the rest on.
    using server = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0, idleTimeout: 0 },
      fetch(request) {
        const { pathname, search } = new URL(request.url)
        if (pathname === '/')
          return new Response(`<script type="module">${program}</script>`, {
            headers: { 'content-type': 'text/html; charset=utf-8' },
          })
        if (pathname.startsWith('/client/')) return new Response(Bun.file(inPackage(pathname)))
        const headers = new Headers(request.headers)
        for (const name of ['origin', 'host', 'referer']) headers.delete(name)
        headers.set('authorization', `Bearer ${mill.token}`)
        return fetch(`${mill.url}${pathname}${search}`, { method: request.method, headers, body: request.body })
      },
    })
    await using browser = await TestBrowser.start()
    const page = await browser.open(server.url.href)
    await page.waitForFunction('document.title.startsWith("[")')
    expect(`${await page.title()}\n`).toBe(PRINTED)
    expect(browser.complaints).toEqual([])
  },
)

test('taskmill/testing, with the executables of the package of the platform', async () => {
  const example = readFileSync(join(ROOT, 'examples/client/mill.test.ts'), 'utf8')
  writeFileSync(join(home.path, 'mill.test.js'), example)
  const env = { TASKMILL_BIN: await executables(), ...(process.env.TMPDIR && { TMPDIR: process.env.TMPDIR }) }
  const tested = await run([process.execPath, 'test', '--timeout=60000', './mill.test.js'], env)
  expect(tested.stderr).toContain(' 2 pass\n 0 fail\n')
  expect(tested.exitCode).toBe(0)
})

describe('types', () => {
  const PROGRAM_TS = `
import { Taskmill, type TaskGraph, TaskmillError, type TaskRecord } from 'taskmill/client'
const graph: TaskGraph = { tasks: [{ id: 'a', type: 'noop', 'x-mine': 1, retry_on: ['timeout'] }] }
export async function use(mill: Taskmill): Promise<TaskRecord> {
  const { state } = await mill.run(graph)
  const isRunning: boolean = state === 'running'
  for await (const event of mill.events()) {
    if (event.event === 'graph_ended') console.log(event.counts.success, event.id)
    if (event.event === 'reset') console.log(event.tasks?.[0]?.status)
  }
  if (isRunning) throw new TaskmillError('x', { code: 'timeout' })
  return mill.getTask('a')
}
// @ts-expect-error a misspelt field
export const misspelt: TaskGraph = { tasks: [{ id: 'a', type: 'noop', depend_on: [] }] }
export const same: typeof Taskmill = (await import('taskmill')).Taskmill
// @ts-expect-error a misspelt state
new Taskmill().graphs({ state: 'faild' })
`

  test.each([
    ['a browser', { lib: ['esnext', 'dom'], moduleResolution: 'bundler', module: 'preserve' }],
    ['Node', { lib: ['es2023', 'dom'], moduleResolution: 'nodenext', module: 'nodenext' }],
  ])('for programs of %s, in full strictness and without other packages', async (_, settings) => {
    const options = {
      ...settings,
      strict: true,
      noEmit: true,
      types: [],
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
    }
    const compilerOptions = { ...options, noUncheckedIndexedAccess: true, target: 'esnext' }
    writeFileSync(join(home.path, 'use.ts'), PROGRAM_TS)
    writeFileSync(join(home.path, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use.ts'] }))
    expect(await run([join(ROOT, 'node_modules/.bin/tsc'), '-p', '.'])).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  })
})
