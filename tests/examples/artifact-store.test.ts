/** The store of a build keeps what it gets, within its limits. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { serveArtifacts } from '../../examples/demo/artifact-store.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const put = (url: string, body: string | Uint8Array<ArrayBuffer>) => fetch(url, { method: 'PUT', body })

describe('the store', () => {
  test('has the sources from the start, and what is put into it', async () => {
    await using store = await serveArtifacts({ port: 0 })
    using dir = tempDir()
    expect(await (await fetch(store.url)).json()).toEqual(['sources.tar.gz'])
    writeFileSync(
      join(dir.path, 'sources.tar.gz'),
      new Uint8Array(await (await fetch(`${store.url}/sources.tar.gz`)).arrayBuffer()),
    )
    const { stdout } = Bun.spawnSync(['tar', '-tzf', join(dir.path, 'sources.tar.gz')])
    expect(stdout.toString().split('\n')).toEqual(expect.arrayContaining(['documents/dawn.txt', 'guide/press.awk']))

    expect((await put(`${store.url}/page.html`, 'first')).status).toBe(204)
    expect((await put(`${store.url}/page.html`, 'second')).status).toBe(204)
    expect(await (await fetch(`${store.url}/page.html`)).text()).toBe('second')
    expect(await (await fetch(store.url)).json()).toEqual(['sources.tar.gz', 'page.html'])
  })

  test('sends all of a file, in pieces', async () => {
    await using store = await serveArtifacts({ port: 0, bytesPerSecond: 1_000_000 })
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    await put(`${store.url}/random`, bytes)
    const got = new Uint8Array(await (await fetch(`${store.url}/random`)).arrayBuffer())
    expect(Buffer.compare(got, bytes)).toBe(0)
  })

  test.each([
    ['GET', 'nothing', 404],
    ['DELETE', 'sources.tar.gz', 405],
    ['PUT', 'a/b', 400],
    ['PUT', '.hidden', 400],
    ['PUT', 'Capital', 400],
  ])('%s /%s is answered %d', async (method, name, status) => {
    await using store = await serveArtifacts({ port: 0 })
    expect((await fetch(`${store.url}/${name}`, { method })).status).toBe(status)
  })

  test('takes no more files than it may, but replaces those that it has', async () => {
    await using store = await serveArtifacts({ port: 0 })
    for (let i = 1; i < 100; i++) expect((await put(`${store.url}/${i}`, 'x')).status).toBe(204)
    expect((await put(`${store.url}/more`, 'x')).status).toBe(507)
    expect((await put(`${store.url}/99`, 'y')).status).toBe(204)
  })

  test('alone listens on the port that it is given, or says why it cannot', async () => {
    await using store = await serveArtifacts({ port: 0 })
    const program = join(import.meta.dir, '../../examples/demo/artifact-store.ts')
    const { port } = new URL(store.url)
    for (const [given, why] of [
      [port, /in use/],
      ['one', /^cannot serve on port one: /],
    ] as const) {
      const { exitCode, stderr } = Bun.spawnSync([process.execPath, program, given], { env: testEnvironment() })
      expect(stderr.toString()).toMatch(why)
      expect(exitCode).toBe(1)
    }
    const alone = Bun.spawn([process.execPath, program, '0'], {
      env: testEnvironment(),
      ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' },
    })
    try {
      const { value } = await alone.stdout.getReader().read()
      const [url] = /http:\S+/.exec(new TextDecoder().decode(value))!
      expect(await (await fetch(url)).json()).toEqual(['sources.tar.gz'])
    } finally {
      alone.kill()
      await alone.exited
    }
  })

  test('takes no file that is too large', async () => {
    await using store = await serveArtifacts({ port: 0 })
    const large = new Uint8Array(16 * 1024 * 1024 + 1)
    expect((await put(`${store.url}/large`, large)).status).toBe(413)
    expect(await (await fetch(store.url)).json()).toEqual(['sources.tar.gz'])
  })
})
