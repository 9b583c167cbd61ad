/** GET /api/v1/tasks/:id/logs?stream=stdout|stderr&follow=true: plain text, live. Source: contract 2 (Ours) and 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { reading } from '../support/reading.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '8'] })
})
afterAll(() => runtime.dispose())

const logs = (id: string, query: string) => runtime.fetch(`/api/v1/tasks/${id}/logs?${query}`)
const text = async (id: string, query: string) => (await logs(id, query)).text()

describe('of a task that ended', () => {
  test('is the whole stream as plain text', async () => {
    const { task_id } = await runtime.runScript('echo out; echo err >&2; echo more')
    const response = await logs(task_id, 'stream=stdout')
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toStartWith('text/plain')
    expect(await response.text()).toBe('out\nmore\n')
    expect(await text(task_id, 'stream=stderr')).toBe('err\n')
  })

  test('is not cut where the inline text is', async () => {
    const { task_id, stdout } = await runtime.runScript('seq 1 200000', { limits: { stdout_max_bytes: 5 } })
    expect(stdout).toBe('1\n2\n3'.slice(0, 5))
    const all = await text(task_id, 'stream=stdout')
    expect(all.length).toBe(1_288_895)
    expect(all).toEndWith('\n199999\n200000\n')
  })

  test('may be a part: from a byte on, its last lines, so many bytes', async () => {
    const { task_id } = await runtime.runScript('seq 1 100000')
    const part = async (query: string) => {
      const answer = await logs(task_id, query)
      return [await answer.text(), Number(answer.headers.get('x-log-offset'))]
    }
    expect(await part('offset=2&limit=4')).toEqual(['2\n3\n', 2])
    expect(await part('offset=588888')).toEqual(['100000\n', 588_888])
    expect(await part('offset=999999999')).toEqual(['', 999_999_999])
    expect(await part('tail=2')).toEqual(['99999\n100000\n', 588_882])
    expect(await part('tail=2&limit=3')).toEqual(['999', 588_882])
    expect(await part('tail=0')).toEqual(['', 588_895])
    expect((await part('tail=100000'))[1]).toBe(0)
    expect((await part('tail=50000'))[0]).toStartWith('50001\n')
    for (const query of ['offset=-1', 'tail=100001', 'limit=0', 'offset=0&tail=1', 'tail=x']) {
      expect([query, (await logs(task_id, query)).status]).toEqual([query, 400])
    }
  })

  test('is byte for byte what was printed', async () => {
    const { task_id } = await runtime.runScript(`printf 'a\\000\\377\\376\\r\\n\\303'`)
    const bytes = new Uint8Array(await (await logs(task_id, 'stream=stdout')).arrayBuffer())
    expect([...bytes]).toEqual([0x61, 0, 0xff, 0xfe, 0x0d, 0x0a, 0xc3])
  })

  test('ends at once with follow=true, too', async () => {
    const { task_id } = await runtime.runScript('echo x')
    expect(await text(task_id, 'stream=stdout&follow=true')).toBe('x\n')
    expect(await text(task_id, 'stream=stderr&follow=true')).toBe('')
  })
})

describe('of a task that runs', () => {
  test('without follow is what there is so far', async () => {
    const id = await runtime.script('echo first; sleep 600')
    await runtime.printed(id)
    expect(await text(id, 'stream=stdout')).toBe('first\n')
    expect(await text(id, 'stream=stderr')).toBe('')
    expect(await text(id, 'stream=stdout&follow=false')).toBe('first\n')
  })

  test('with follow=true comes live, and ends with the task', async () => {
    const file = (name: string) => join(runtime.dataDir, `live-${name}`)
    const id = await runtime.script(
      `echo 1; ${waitFor(file('2'))}; echo 2; printf 3 >&2; ${waitFor(file('4'))}; printf 4; exit 1`,
    )
    const stdout = reading(logs(id, 'stream=stdout&follow=true'))
    const stderr = reading(logs(id, 'stream=stderr&follow=true'))
    await stdout.has('1\n')
    await Bun.write(file('2'), '')
    await stdout.has('1\n2\n')
    await stderr.has('3')
    expect([stdout.state.hasEnded, stderr.state.hasEnded]).toEqual([false, false])
    await Bun.write(file('4'), '')
    await Promise.all([stdout.done, stderr.done])
    expect([stdout.state.received, stderr.state.received]).toEqual(['1\n2\n4', '3'])
    expect((await runtime.ended(id)).exit_code).toBe(1)
  })

  test('many may follow, each from the start', async () => {
    const go = join(runtime.dataDir, 'go-many')
    const id = await runtime.script(`echo a; ${waitFor(go)}; echo b`)
    await runtime.printed(id)
    const readers = Array.from({ length: 10 }, () => reading(logs(id, 'stream=stdout&follow=true')))
    for (const reader of readers) await reader.has('a\n')
    await Bun.write(go, '')
    for (const { done, state } of readers) {
      await done
      expect(state.received).toBe('a\nb\n')
    }
  })

  test('one who goes away takes nothing with him', async () => {
    const id = await runtime.script('while :; do echo tick; sleep 0.01; done')
    const abort = new AbortController()
    const response = await runtime.fetch(`/api/v1/tasks/${id}/logs?stream=stdout&follow=true`, { signal: abort.signal })
    await response.body!.getReader().read()
    abort.abort()
    expect((await runtime.runScript('echo fine')).stdout).toBe('fine\n')
    await runtime.reached(id, 'running')
    await runtime.kill(id)
    await runtime.ended(id)
  })

  test('one who does not read holds up nobody, and the service does not fill its memory with it', async () => {
    const id = await runtime.script(`head -c 200000000 /dev/zero; sleep 600`)
    const { artifacts } = await runtime.get(id)
    await until(
      () => statSync(artifacts.stdout_path).size, // each answer of the service would take some of its memory
      (size) => size > 100_000_000,
    )
    const response = await logs(id, 'stream=stdout&follow=true')
    const reader = response.body!.getReader()
    await reader.read()
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${runtime.process.pid}/status`, 'utf8'))![1])
    expect((await runtime.runScript('echo fine')).stdout).toBe('fine\n')
    expect(rss()).toBeLessThan(300_000)
    await reader.cancel()
    await runtime.kill(id)
    await runtime.ended(id)
  })
})

test('of a task that waits is empty, and with follow=true comes once it runs, or ends when it is cancelled', async () => {
  await using narrow = await startRuntime({ flags: ['--max-running-tasks', '1'] })
  const logsOf = (id: string, more = '') =>
    narrow.fetch(`/api/v1/tasks/${id}/logs?stream=stdout${more}`).then((response) => response.text())
  const first = await narrow.submit(SLEEP)
  const [runs, never] = [await narrow.submit(script('echo at last')), await narrow.submit(SLEEP)]
  expect(await logsOf(runs)).toBe('')
  const following = [logsOf(runs, '&follow=true'), logsOf(never, '&follow=true')]
  await narrow.kill(never)
  await narrow.kill(first)
  expect(await Promise.all(following)).toEqual(['at last\n', ''])
})

test('the log of a task that outlived a restart is followed to its end', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const go = join(dir.path, 'go')
  let id: string
  {
    await using before = await startRuntime({ dataDir })
    id = await before.script(`echo before; ${waitFor(go)}; echo after`)
    await before.printed(id)
    expect(await before.stop()).toBe(0)
  }
  await using after = await startRuntime({ dataDir })
  const reader = reading(after.fetch(`/api/v1/tasks/${id}/logs?stream=stdout&follow=true`))
  await reader.has('before\n')
  await Bun.write(go, '')
  await reader.done
  expect(reader.state.received).toBe('before\nafter\n')
})
