/**
 * Runtime services of several replicas: with a database they are rows, and so are the attempts that are to be ended there.
 * Source: docs/cluster.md. Real replicas on a real PostgreSQL.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type PooledRuntime, RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { type Control, startControl } from '../support/control.ts'
import { startPostgres } from '../support/postgres.ts'
import { describeReplicas, LONG_LEASE, cluster as newCluster, owns } from '../support/replicas.ts'
import { startPool } from '../support/runtime-pool.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const NOBODY = ['--runtime-url', 'flagged=http://127.0.0.1:1,zone=a']
const GPU = { name: 'gpu-1', url: 'http://127.0.0.1:2', labels: { gpu: '' } }

const ask = async (control: Control, method: string, path: string, body?: object) => {
  const response = await control.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) })
  type Answer = PooledRuntime & { readonly error?: string; readonly attempts: number }
  return { status: response.status, answer: (await response.json()) as Answer }
}

const urlsOf = (runtimes: Awaited<ReturnType<typeof startPool>>): string[] =>
  ['a', 'b'].flatMap((name) => ['--runtime-url', `${name}=${runtimes.urlOf(name)}`])

const listed = async (control: Control): Promise<RuntimesResponse['runtimes']> =>
  checkedAnswer<RuntimesResponse>(RuntimesResponse, await (await control.fetch('/runtimes')).json()).runtimes

/** `name`, with `draining` behind it. */
const pool = async (control: Control): Promise<string[]> =>
  (await listed(control)).map(({ name, draining }) => `${name}${draining ? ' draining' : ''}`)

const seen = (control: Control, wanted: readonly string[]) =>
  until(
    () => pool(control),
    (names) => names.join() === wanted.join(),
  )

describeReplicas('runtime services in a database', (cluster) => {
  test('what one replica adds, drains and removes, all others see, and a start on an empty directory', async () => {
    using each = await cluster()
    const flags = [...NOBODY, ...LONG_LEASE]
    const [first, second] = await Promise.all([each.replica(flags), each.replica(flags)])
    await using _ = first
    await using __ = second
    expect(await ask(first, 'POST', '/runtimes', GPU)).toMatchObject({
      ...{ status: 201, answer: { ...GPU, draining: false, configured: false, attempts: 0 } },
    })
    await seen(second, ['flagged', 'gpu-1'])
    expect((await ask(second, 'POST', '/runtimes', GPU)).status).toBe(200)
    expect((await ask(second, 'POST', '/runtimes/gpu-1/drain')).answer.draining).toBe(true)
    expect((await ask(second, 'POST', '/runtimes/flagged/drain')).answer.draining).toBe(true)
    await seen(first, ['flagged draining', 'gpu-1 draining'])
    expect((await ask(first, 'POST', '/runtimes/gpu-1/undrain')).answer.draining).toBe(false)
    await seen(second, ['flagged draining', 'gpu-1'])
    expect((await ask(second, 'POST', '/runtimes', { ...GPU, labels: { gpu: 'a100' } })).status).toBe(200)
    await until(
      () => listed(first),
      (runtimes) => runtimes.some(({ labels }) => labels.gpu === 'a100'),
    )
    await using third = await each.replica(flags)
    expect(await pool(third)).toEqual(['flagged draining', 'gpu-1'])
    expect((await ask(third, 'DELETE', '/runtimes/flagged')).status).toBe(200)
    expect((await ask(third, 'DELETE', '/runtimes/gpu-1')).status).toBe(200)
    await Promise.all([seen(first, []), seen(second, [])])
    const again = { name: 'flagged', url: 'http://127.0.0.1:1', labels: { zone: 'a' } }
    expect((await ask(first, 'POST', '/runtimes', again)).answer).toMatchObject({ configured: true, draining: false })
    await seen(third, ['flagged'])
    expect(existsSync(join(first.dataDir, 'runtimes.json'))).toBe(false)
  })

  test('the token that is given at one replica is used by all, and a row without one has the common token', async () => {
    const sent: (string | null)[] = []
    await using service = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1' },
      fetch({ headers }) {
        sent.push(headers.get('authorization'))
        return new Response(null, { status: 401 })
      },
    })
    using each = await cluster()
    const env = { SERVICE_RUNTIME_TOKEN: 'common' }
    const flags = [...each.flags, ...NOBODY, ...LONG_LEASE]
    await using first = await startControl({ flags, env })
    await using second = await startControl({ flags, env })
    const entry = { name: 'gpu-1', url: `http://127.0.0.1:${service.port}` }
    const calledWith = (authorization: string | null) =>
      until(
        async () => {
          sent.length = 0
          await listed(second)
          return [...sent]
        },
        (seen) => seen.length > 0 && seen.every((each) => each === authorization),
      )
    expect((await ask(first, 'POST', '/runtimes', entry)).status).toBe(201)
    await calledWith(null)
    expect((await ask(first, 'POST', '/runtimes', { ...entry, token: 'own' })).status).toBe(200)
    await calledWith('Bearer own')
    await each.server.run('update taskmill.runtime set token = null', each.database) // as of an earlier version
    expect((await ask(first, 'POST', '/runtimes', { ...entry, labels: { gpu: '' } })).status).toBe(200)
    await calledWith('Bearer common')
  })

  test('changes of two replicas at the same moment all stay', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    const names = Array.from({ length: 20 }, (_, i) => `r${i}`)
    const added = await Promise.all(
      names.map((name, i) =>
        until(
          () => ask(i % 2 === 0 ? first : second, 'POST', '/runtimes', { name, url: `http://127.0.0.1:${i + 1}` }),
          ({ status }) => status !== 503, // a slow disk makes some wait too long; what was asked for is done all the same
        ),
      ),
    )
    for (const { status } of added) expect([200, 201]).toContain(status)
    const drained = await Promise.all(
      names.map((name, i) =>
        until(
          () => ask(i % 2 === 0 ? second : first, 'POST', `/runtimes/${name}/drain`),
          ({ status }) => status !== 404 && status !== 503,
        ),
      ),
    )
    expect(drained.map(({ status }) => status)).toEqual(names.map(() => 200))
    const sorted = (control: Control) => pool(control).then((found) => found.toSorted())
    const wanted = ['default', ...names.map((name) => `${name} draining`)].toSorted()
    for (const control of [first, second]) {
      await until(
        () => sorted(control),
        (found) => found.join() === wanted.join(),
      )
    }
  })

  test('an address of --runtime-url counts at its replica, and one that was added at the others', async () => {
    using each = await cluster()
    await using plain = await each.replica(LONG_LEASE)
    await using flagged = await each.replica([...NOBODY, ...LONG_LEASE])
    const elsewhere = { name: 'flagged', url: 'http://127.0.0.1:3', labels: {} }
    expect((await ask(flagged, 'POST', '/runtimes', elsewhere)).status).toBe(409)
    expect((await ask(plain, 'POST', '/runtimes', elsewhere)).answer).toMatchObject({ ...elsewhere, configured: false })
    const { url, added_url } = await until(
      () => flagged.log.find(({ msg }) => String(msg).startsWith('a runtime service was added under a name of')),
      (line) => line !== undefined,
    ).then((line) => line!)
    expect([url, added_url]).toEqual(['http://127.0.0.1:1', 'http://127.0.0.1:3'])
    expect((await listed(flagged)).map((runtime) => [runtime.name, runtime.url])).toEqual([
      ['flagged', 'http://127.0.0.1:1'],
    ])
    await ask(plain, 'POST', '/runtimes/flagged/drain') // that is of the name
    await seen(flagged, ['flagged draining'])
  })

  test('one that has attempts of another replica is not removed; lost, they end at every owner, and run elsewhere', async () => {
    await using runtimes = await startPool({ a: {}, b: {} })
    using each = await cluster()
    const urls = [...urlsOf(runtimes), ...LONG_LEASE]
    const [first, second] = await Promise.all([each.replica(urls), each.replica(urls)])
    await using _ = first
    await using __ = second
    await ask(first, 'POST', '/runtimes/b/drain') // so that all of them are on a
    await seen(second, ['a', 'b draining'])
    await first.submit([runtimes.gated('one', {}, { retry: 1 })])
    await second.submit([runtimes.gated('two', {}, { retry: 1 })])
    const placed = (control: Control, id: string, attempt: number, place: string) =>
      until(
        () => control.get(id),
        (task) => task.status === 'running' && task.attempt === attempt && task.placed_on === place,
      )
    const ran = (count: number) =>
      until(
        () => runtimes.lines('ran').length,
        (lines) => lines === count,
      )
    await ran(2)
    await using third = await each.replica(urls)
    await until(
      () => listed(third),
      (all) => all[0]!.attempts === 2,
    )
    const refused = await ask(third, 'DELETE', '/runtimes/a')
    expect([refused.status, refused.answer.error]).toEqual([409, expect.stringContaining('runtime a has 2 attempts')])
    await ask(third, 'POST', '/runtimes/b/undrain')
    const there = [(await first.get('one')).handle_id!, (await second.get('two')).handle_id!]
    expect((await ask(third, 'DELETE', '/runtimes/a?lost=true')).answer.attempts).toBe(2)
    await placed(first, 'one', 2, 'b')
    await placed(second, 'two', 2, 'b')
    await ran(4)
    expect((await first.get('one')).attempts![0]).toMatchObject({
      attempt: 1,
      code: 'external_failure',
      placed_on: 'a',
    })
    // The machine was not gone after all: what runs there is ended, whoever is to do that.
    expect((await ask(third, 'POST', '/runtimes', { name: 'a', url: runtimes.urlOf('a') })).status).toBe(201)
    for (const id of there) expect((await runtimes.runtime('a').ended(id)).status).toBe('cancelled')
    await runtimes.open()
    for (const id of ['one', 'two']) expect(await third.ended(id)).toMatchObject({ status: 'success', attempt: 2 })
    await until(
      () => each.server.run('select handle_id from taskmill.orphan', each.database),
      (rows) => rows.length === 0,
    )
  })

  test('one that is lost while nobody has a graph yet loses the attempts of that graph, too', async () => {
    await using runtimes = await startPool({ a: {}, b: {} })
    using each = await cluster()
    const urls = urlsOf(runtimes)
    const first = await each.replica(urls)
    await first.submit([runtimes.gated('t', {}, { retry: 1 })])
    await until(
      () => runtimes.lines('ran').length,
      (count) => count === 1,
    )
    const place = (await first.get('t')).placed_on!
    await using second = await each.replica(urls)
    await first.stop('SIGKILL')
    await first.dispose()
    expect((await ask(second, 'DELETE', `/runtimes/${place}?lost=true`)).status).toBe(200)
    const again = { name: place, url: runtimes.urlOf(place), labels: {} }
    expect((await ask(second, 'POST', '/runtimes', again)).status).toBe(201)
    await owns(second, 1)
    await until(
      () => second.get('t'),
      ({ attempt, status }) => attempt === 2 && status === 'running',
    )
    expect((await second.get('t')).attempts![0]).toMatchObject({ code: 'external_failure', placed_on: place })
    await runtimes.open()
    expect((await second.ended('t')).status).toBe('success')
  })

  test('none is removed while a replica does not tell of its attempts, unless it is lost', async () => {
    using each = await cluster()
    const flags = [...each.flags, ...NOBODY, '--lease', '60s'] // nobody takes its graphs meanwhile
    await using first = await startControl({ flags })
    await using second = await startControl({ flags })
    const { replica } = (await (await second.fetch('/health')).json()) as { replica: { id: number } }
    await ask(first, 'POST', '/runtimes', GPU)
    second.process.kill('SIGSTOP')
    try {
      const refused = await ask(first, 'DELETE', '/runtimes/gpu-1')
      expect([refused.status, refused.answer.error]).toEqual([
        503,
        `whether replica ${replica.id} had attempts at runtime gpu-1 is not known; try again`,
      ])
      const list = await first.fetch('/runtimes')
      expect([list.status, list.headers.get('x-missing-replicas')]).toEqual([200, String(replica.id)])
      expect((await ask(first, 'DELETE', '/runtimes/gpu-1?lost=true')).status).toBe(200)
      expect(await pool(first)).toEqual(['flagged'])
    } finally {
      second.process.kill('SIGCONT')
    }
    await seen(second, ['flagged'])
  })

  test('what a replica is to end outlives it, its disk and its machine', async () => {
    await using runtimes = await startPool({ a: {} })
    using each = await cluster()
    const urls = ['--runtime-url', `a=${runtimes.urlOf('a')}`]
    const first = await each.replica(urls)
    await first.submit([runtimes.gated('t')])
    await until(
      () => runtimes.lines('ran'),
      (lines) => lines.length === 1,
    )
    const there = (await first.get('t')).handle_id!
    await runtimes.killRuntime('a')
    await ask(first, 'DELETE', '/runtimes/a?lost=true')
    expect(await first.ended('t')).toMatchObject({ status: 'failed' })
    await using second = await each.replica(urls)
    await first.stop('SIGKILL')
    await first.dispose() // with its directory
    await owns(second, 1)
    await until(
      () => second.log.some(({ msg }) => msg === 'attempts that are to be ended were taken over'),
      (isSo) => isSo,
    )
    await runtimes.startRuntime('a')
    expect((await ask(second, 'POST', '/runtimes', { name: 'a', url: runtimes.urlOf('a') })).status).toBe(201)
    expect((await runtimes.runtime('a').ended(there)).status).toBe('cancelled')
    await until(
      () => each.server.run('select handle_id from taskmill.orphan', each.database),
      (rows) => rows.length === 0,
    )
    const kills = runtimes.runtime('a').log.filter(({ msg }) => String(msg).includes('kill'))
    expect(kills.length).toBeLessThan(2)
  })

  test('files of an earlier version in the data directory become rows, once', async () => {
    await using runtimes = await startPool({ a: {} })
    using each = await cluster()
    using temp = tempDir()
    const orphan = await runtimes
      .runtime('a')
      .submit({ execution: { kind: 'command', program: '/bin/sleep', args: ['600'] } })
    await Bun.write(
      join(temp.path, 'runtimes.json'),
      JSON.stringify({ added: [GPU], draining: ['gpu-1'], removed: [], lost: ['gone'] }),
    )
    await Bun.write(
      join(temp.path, 'orphans.json'),
      JSON.stringify({ orphans: [{ handle_id: orphan, is_taken: true, since: Date.now(), runtime: 'a' }] }),
    )
    const flags = [...each.flags, '--runtime-url', `a=${runtimes.urlOf('a')}`]
    {
      await using control = await startControl({ dataDir: temp.path, flags })
      expect(await pool(control)).toEqual(['a', 'gpu-1 draining'])
      expect((await runtimes.runtime('a').ended(orphan)).status).toBe('cancelled')
      expect(existsSync(join(temp.path, 'runtimes.json'))).toBe(false)
      expect(existsSync(join(temp.path, 'orphans.json.moved'))).toBe(true)
      expect((await ask(control, 'DELETE', '/runtimes/gpu-1')).status).toBe(200)
      expect(await control.stop('SIGTERM')).toBe(0)
    }
    await using control = await startControl({ dataDir: temp.path, flags })
    expect(await pool(control)).toEqual(['a'])
    expect(await each.server.run(`select losses from taskmill.runtime where name = 'gone'`, each.database)).toEqual([
      { losses: 1 },
    ])
  })

  test('a change is refused with 503 while the database is away, and the pool stays as it was', async () => {
    await using away = await startPostgres()
    using each = await newCluster([away])
    await using control = await each.replica(['--runtime-url', 'a=http://127.0.0.1:1'])
    await away.kill()
    expect((await ask(control, 'POST', '/runtimes', GPU)).status).toBe(503)
    expect((await ask(control, 'POST', '/runtimes/a/drain')).status).toBe(503)
    expect((await control.fetch('/runtimes')).status).toBe(503)
    await away.start()
    await until(
      () => control.fetch('/runtimes'),
      ({ status }) => status === 200,
    )
    expect(await pool(control)).toEqual(['a'])
    expect((await ask(control, 'POST', '/runtimes', GPU)).status).toBe(201)
    expect(await pool(control)).toEqual(['a', 'gpu-1'])
  })
})
