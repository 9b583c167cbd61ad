/** The steps of a build can use curl as they do, and what stands in for it where it is missing. Method: real shells. */
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serveArtifacts } from '../../examples/demo/artifact-store.ts'
import { standInForCurl, withPreamble } from '../../examples/demo/curl.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

async function run(script: string, cwd: string, env: Record<string, string> = {}) {
  const child = Bun.spawn(['sh', '-c', script], {
    ...{ cwd, env: testEnvironment(env) },
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

const STAND_IN = readFileSync(join(import.meta.dir, '../../examples/demo/curl.sh'), 'utf8')

const named = (name: string, isThere: boolean) => (isThere ? name : `${name} (skipped: what it needs is not here)`)
const hasCurl = Bun.which('curl') !== null
const hasPerl = Bun.which('perl') !== null

describe.each([
  [named('curl', hasCurl), '', hasCurl],
  [named('the stand-in for curl', hasPerl), STAND_IN, hasPerl],
] as const)('%s', (_, preamble, isThere) => {
  const script = (text: string) => `set -eu\n${preamble}${text}`

  test.skipIf(!isThere)('fetches and puts any bytes', async () => {
    await using store = await serveArtifacts({ port: 0, bytesPerSecond: 1_000_000 })
    using dir = tempDir()
    const bytes = crypto.getRandomValues(new Uint8Array(50_000))
    writeFileSync(join(dir.path, 'sent'), bytes)
    const text = 'curl -fsS -T sent "$STORE/sent"; curl -fsS -o got "$STORE/sent"'
    expect(await run(script(text), dir.path, { STORE: store.url })).toEqual({ exitCode: 0, stdout: '', stderr: '' })
    expect(Buffer.compare(readFileSync(join(dir.path, 'got')), bytes)).toBe(0)
  })

  test.skipIf(!isThere).each([
    ['curl -fsS -o got "$STORE/nothing"', /404/],
    ['curl -fsS -T sent "$STORE/.hidden"', /400/],
    ['curl -fsS -T nothing "$STORE/sent"', /nothing/],
    ['curl -fsS -o got "http://127.0.0.1:1/sent"', /127\.0\.0\.1/],
  ])('%s fails, and says why', async (text, why) => {
    await using store = await serveArtifacts({ port: 0 })
    using dir = tempDir()
    writeFileSync(join(dir.path, 'sent'), 'x')
    const { exitCode, stderr } = await run(script(`${text}; echo went on`), dir.path, { STORE: store.url })
    expect(exitCode).not.toBe(0)
    expect(stderr).toMatch(why)
  })
})

describe('a host', () => {
  test('with curl needs no stand-in; one with neither curl nor perl is told', () => {
    using dir = tempDir()
    const has = (...programs: string[]) => {
      const path = join(dir.path, programs.join('-') || 'nothing')
      for (const program of programs) Bun.spawnSync(['install', '-D', '/bin/sh', join(path, program)])
      return path
    }
    expect(standInForCurl(has('curl', 'perl'))).toBeUndefined()
    expect(standInForCurl(has('perl'))).toBe(STAND_IN)
    expect(() => standInForCurl(has())).toThrow('install it')
  })

  test('without curl gets the stand-in before the scripts of runtime tasks, and nowhere else', () => {
    const graph = {
      tasks: [
        { id: 'a', type: 'runtime', input: { script: 'curl x\n', env: { A: 'b' } }, depends_on: ['b'] },
        { id: 'b', type: 'runtime', input: { program: 'curl' } },
        { id: 'c', type: 'os', tool_name: 'shell', input: { script: 'x' } },
      ],
    }
    const [a, ...others] = JSON.parse(withPreamble(JSON.stringify(graph), 'first\n')).tasks
    expect(a).toEqual({ ...graph.tasks[0], input: { script: 'first\ncurl x\n', env: { A: 'b' } } })
    expect(others).toEqual(graph.tasks.slice(1))
  })
})
