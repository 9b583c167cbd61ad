/**
 * What was acknowledged survives: SIGKILL, torn and damaged journals, a full disk, a second service. Against the built
 * service, with its real files.
 */
import { describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { tempDir } from '../support/temp.ts'
import { isAlive, until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

const open = { SERVICE_SHELL_POLICY: 'open' }
/** Long enough that no state file is written while a test runs: only the journal can know. */
const NO_SNAPSHOT = ['--persist-interval', '1h', '--kill-grace', '200ms']

const segments = (dataDir: string) => readdirSync(dataDir).filter((name) => name.startsWith('journal-'))
const newestSegment = (dataDir: string) => join(dataDir, segments(dataDir).sort().at(-1)!)

describe('a graph that was answered 202 is on disk before the answer leaves', () => {
  test('it is there and runs on after SIGKILL, although no state file was written', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      await control.submit([
        { id: 'first', type: 'noop', annotations: { note: 'kept' } },
        {
          id: 'long',
          type: 'sleep',
          params: { duration_ms: 600_000 },
          depends_on: ['first'],
          retry: 1,
          timeout: 3_600_000,
        },
        { id: 'after', type: 'noop', depends_on: ['long'] },
      ])
      await control.reached('long', 'running')
      await control.stop('SIGKILL')
      expect(existsSync(join(dataDir, 'state.json'))).toBe(false)
    }
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    expect(await control.get('first')).toMatchObject({ status: 'success', attempt: 1, annotations: { note: 'kept' } })
    // A local attempt that a crash interrupted uses up no retry, and the next attempt has the next number.
    const again = await control.reached('long', 'running')
    expect(again).toMatchObject({ attempt: 2, retry: 1, timeout: 3_600_000, depends_on: ['first'] })
    expect((await control.get('after')).status).toBe('pending')
  })

  test('a graph of 20,000 tasks, half of them ended, is as it was', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const tasks = Array.from({ length: 20_000 }, (_, i) => ({
      id: `t${i}`,
      type: i % 2 ? 'noop' : 'sleep',
      depends_on: i % 2 ? [] : ['gate'],
    }))
    {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      await control.submit([{ id: 'gate', type: 'sleep', params: { duration_ms: 600_000 } }, ...tasks])
      await until(
        () => control.metrics(),
        ({ tasks_succeeded }) => tasks_succeeded === 10_000,
      )
      await control.get('gate') // counters may be ahead of the journal, the answer to this is not
      await control.stop('SIGKILL')
    }
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    const counts = Map.groupBy(await control.list(), ({ status }) => status)
    expect([counts.get('success')?.length, counts.get('pending')?.length]).toEqual([10_000, 10_000])
  })

  test('the order of the list and of the answers survives', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const ids = ['10', '9', 'b', '__proto__', 'a', '1']
    {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      await control.submit(ids.map((id) => ({ id, type: 'noop' })))
      await control.submit([{ id: '0', type: 'noop' }])
      await control.stop('SIGKILL')
    }
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      expect((await control.list()).map(({ id }) => id)).toEqual([...ids, '0'])
      await control.stop(signal)
    }
  })
})

describe('the answers of cancel and delete are durable too', () => {
  test('during a stop, too: what is 204 stays deleted, what is 503 stays', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const ids = Array.from({ length: 2_000 }, (_, i) => `task-${i}`)
    const answers = new Map<string, number>()
    {
      await using control = await startControl({ dataDir })
      await control.submit(ids.map((id) => ({ id, type: 'noop' })))
      await control.allEnded()
      const stopped = control.stop('SIGTERM')
      for (const id of ids) {
        const response = await control.fetch(`/tasks/${id}`, { method: 'DELETE' }).catch(() => undefined)
        if (response === undefined) break
        answers.set(id, response.status)
      }
      expect(await stopped).toBe(0)
    }
    expect([204, 503]).toEqual(expect.arrayContaining([...new Set(answers.values())]))
    await using control = await startControl({ dataDir })
    const left = new Set((await control.list()).map(({ id }) => id))
    for (const [id, status] of answers) expect([id, left.has(id)]).toEqual([id, status === 503])
  })

  test('a delete that comes when the journal is closed is 503, and changes nothing', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using control = await startControl({ dataDir, flags: ['--shutdown-timeout', '1ms'] })
      await control.submit([{ id: 'a', type: 'noop' }])
      await control.ended('a')
      await control.submit([{ id: 'held', type: 'sleep', params: { duration_ms: 600_000 } }])
      await control.reached('held', 'running')
      // A request that is not answered holds the stop open, and one that has begun to arrive is let in.
      const waiting = control.fetch('/tasks/held?wait_ms=60000').catch(() => undefined)
      using late = await RawClient.connect(control)
      late.send('DELETE /tasks/a HTTP/1.1\r\nHost: localhost\r\n')
      await control.get('a')
      const since = performance.now()
      const stopped = control.stop('SIGTERM')
      await until(
        () => segments(dataDir).length, // the last one is empty, and is removed when the journal is closed
        (count) => count === 0,
      )
      late.send('\r\n')
      await late.closed
      // Open requests have one second at the end, which a busy machine may let pass.
      if (late.received === '') expect(performance.now() - since).toBeGreaterThan(1_000)
      else expect(late.received).toStartWith('HTTP/1.1 503 ')
      expect(await stopped).toBe(0)
      await waiting
    }
    await using control = await startControl({ dataDir })
    expect((await control.get('a')).status).toBe('success')
  })

  test('what was deleted stays deleted, what was cancelled stays cancelled', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      await control.submit([
        { id: 'gone', type: 'noop' },
        { id: 'gate', type: 'sleep', params: { duration_ms: 600_000 } },
        { id: 'never', type: 'noop', depends_on: ['gate'] },
        { id: 'downstream', type: 'noop', depends_on: ['never'] },
        { id: 'dropped', type: 'noop', depends_on: ['gate'] },
        { id: 'orphan', type: 'noop', depends_on: ['dropped'] },
      ])
      await control.ended('gone')
      expect((await control.fetch('/tasks/gone', { method: 'DELETE' })).status).toBe(204)
      expect((await control.fetch('/tasks/dropped', { method: 'DELETE' })).status).toBe(204)
      expect((await control.fetch('/tasks/never/cancel', { method: 'POST' })).status).toBe(202)
      await control.stop('SIGKILL')
    }
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    expect((await control.fetch('/tasks/gone')).status).toBe(404)
    expect((await control.fetch('/tasks/dropped')).status).toBe(404)
    expect((await control.get('never')).status).toBe('cancelled')
    expect((await control.get('downstream')).error).toBe('dependency never cancelled')
    expect((await control.get('orphan')).error).toBe('dependency dropped deleted')
  })

  test('a task that was being cancelled when the service was killed is cancelled', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    {
      await using control = await startControl({
        dataDir,
        env: open,
        flags: ['--persist-interval', '1h', '--kill-grace', '1m'],
      })
      const isDeaf = join(dir.path, 'deaf')
      const script = `trap "" TERM; : > ${isDeaf}; while :; do sleep 0.05; done`
      await control.submit([{ id: 'stubborn', type: 'shell', params: { script } }])
      await until(() => existsSync(isDeaf))
      await control.fetch('/tasks/stubborn/cancel', { method: 'POST' })
      await control.stop('SIGKILL')
    }
    await using control = await startControl({ dataDir, env: open, flags: NO_SNAPSHOT })
    expect(await control.get('stubborn')).toMatchObject({ status: 'cancelled', error: 'task cancelled' })
  })
})

test('what a killed service left running is ended before its tasks run again', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const pidsFile = join(dir.path, 'pids')
  // One in the group, one that left it, one that has lost its environment; the task runs once more after the restart.
  const script = `if [ -e ${pidsFile} ]; then exit 0; fi
    sleep 600 & a=$!; setsid sleep 600 & b=$!; env -i /bin/sleep 600 & c=$!
    while ! grep -q " $b $b " /proc/$b/stat; do :; done
    echo $$ $a $b $c > ${pidsFile}; wait`
  {
    await using control = await startControl({ dataDir, env: open, flags: NO_SNAPSHOT })
    await control.submit([{ id: 'nest', type: 'shell', params: { script } }])
    await until(() => existsSync(pidsFile) && readFileSync(pidsFile, 'utf8').trim().split(' ').length === 4)
    await control.stop('SIGKILL')
  }
  const pids = readFileSync(pidsFile, 'utf8').trim().split(' ').map(Number)
  expect(await Promise.all(pids.map(isAlive))).toEqual([true, true, true, true])
  await using control = await startControl({ dataDir, env: open, flags: NO_SNAPSHOT })
  expect(await Promise.all(pids.map(isAlive))).toEqual([false, false, false, false])
  expect(await control.ended('nest')).toMatchObject({ status: 'success', attempt: 2 })
})

describe('the journal', () => {
  async function killedWithTwoGraphs(dataDir: string) {
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await control.submit([{ id: 'one', type: 'noop' }])
    await control.ended('one')
    await control.submit([{ id: 'two', type: 'noop' }])
    await control.ended('two')
    await control.stop('SIGKILL')
  }

  test.each([1, 5, 20])('a tail that is torn %i bytes before its end is recognised and cut', async (bytes) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await killedWithTwoGraphs(dataDir)
    const path = newestSegment(dataDir)
    const whole = readFileSync(path)
    writeFileSync(path, whole.subarray(0, whole.length - bytes))
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    expect((await control.get('one')).status).toBe('success')
    expect((await control.ended('two')).status).toBe('success')
    expect(control.log.find(({ msg }) => msg === 'listening')?.cut_journal_bytes).toBeGreaterThan(0)
  })

  test('rubbish behind the last record is cut too', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await killedWithTwoGraphs(dataDir)
    appendFileSync(newestSegment(dataDir), Buffer.alloc(10_000))
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    expect((await control.list()).map(({ id }) => id)).toEqual(['one', 'two'])
  })

  test('any other damage stops the start with file, offset and remedy, and touches nothing', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await killedWithTwoGraphs(dataDir)
    const path = newestSegment(dataDir)
    const bytes = readFileSync(path)
    bytes[40]! ^= 1
    writeFileSync(path, bytes)
    const start = startControl({ dataDir, flags: NO_SNAPSHOT })
    await expect(start).rejects.toThrow(
      `cannot read the journal ${path}: it is damaged at offset 0, before records that were on disk for sure; it is left as it is: repair it or move it away`,
    )
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(segments(dataDir).length).toBe(1)
  })

  test('goes once the state file holds what it held', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await killedWithTwoGraphs(dataDir)
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '20ms'] })
    await until(
      () => segments(dataDir).map((name) => sizeIfThere(join(dataDir, name))),
      (sizes) => sizes.length === 1 && sizes[0] === 0,
    )
    expect(Object.keys(JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')))).toEqual(['one', 'two'])
    expect(await control.stop()).toBe(0)
    const rest = [
      'events-0000000000000000.log',
      'format.json',
      'lock',
      'pack-0000000001-0000000002.log',
      'reserve',
      'results',
      'state.json',
    ]
    expect(readdirSync(dataDir).sort()).toEqual(rest)
  })

  test('nothing changed: no snapshot', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '20ms'] })
    await control.run({ type: 'noop' })
    const path = join(dataDir, 'state.json')
    await until(() => existsSync(path) && segments(dataDir).every((name) => sizeIfThere(join(dataDir, name)) === 0))
    const { mtimeNs } = statSync(path, { bigint: true }) // there may have been an earlier one
    const ticks = Date.now() + 200
    await until(
      () => Date.now(),
      (now) => now > ticks,
    )
    expect(statSync(path, { bigint: true }).mtimeNs).toBe(mtimeNs)
  })
})

/** The service removes files between our reading of the directory and our look at them. */
const sizeIfThere = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

describe('a full disk', () => {
  test.skipIf(!canMount)(
    'that has no room for an outcome: it is tried again now and then, and SIGTERM ends the service',
    async () => {
      using dir = tempDir()
      const dataDir = join(dir.path, 'data')
      using _disk = smallDisk(dataDir, 1500 * 1024)
      await using control = await startControl({ dataDir, env: open, flags: NO_SNAPSHOT })
      const command = { command: 'head', args: ['-c', '1000000', '/dev/zero'] }
      await control.submit([{ id: 'large', type: 'shell', params: command }])
      await until(
        () => control.log.map(({ msg }) => String(msg)),
        (lines) => lines.some((line) => line.startsWith('cannot write the journal')),
      )
      const ticks = Date.now() + 2_500 // enough tries for each to have made two of its own
      await until(
        () => Date.now(),
        (now) => now > ticks,
      )
      expect(await control.stop()).toBe(1)
    },
  )

  // Only root may mount a small disk.
  test.skipIf(!canMount)('503, nothing half-stored, and it recovers when the disk does', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 512 * 1024)
    {
      await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
      await control.submit([{ id: 'before', type: 'noop' }])
      await control.ended('before')
      disk.fill()
      const big = { id: 'refused', type: 'noop', params: { message: 'x'.repeat(100_000) } }
      const response = await control.post({ tasks: [big] })
      expect(response.status).toBe(503)
      expect(await response.json()).toEqual({ error: expect.stringContaining('cannot keep this on disk now') })
      expect((await control.fetch('/tasks/refused')).status).toBe(404)
      expect((await control.fetch('/health')).status).toBe(200)

      disk.free()
      const after = await control.submit([{ ...big, params: { message: 'small' } }])
      expect(after.accepted).toBe(1)
      await control.ended('refused')
      await control.stop('SIGKILL')
    }
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    expect((await control.list()).map(({ id, status }) => [id, status])).toEqual([
      ['before', 'success'],
      ['refused', 'success'],
    ])
    await control.stop()
  })
})

test('the process of a deleted task is ended too, although no state file knows of the task', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const pidFile = join(dir.path, 'pid')
  const keepAlive = { id: 'other', type: 'sleep', params: { duration_ms: 600_000 } }
  {
    await using control = await startControl({ dataDir, env: open, flags: ['--persist-interval', '20ms'] })
    const script = `echo $$ > ${pidFile}; exec env -i /bin/sleep 600`
    await control.submit([{ id: 'stray', type: 'shell', params: { script } }, keepAlive])
    await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8').endsWith('\n'))
    await control.fetch('/tasks/stray', { method: 'DELETE' })
    await until(
      () =>
        existsSync(join(dataDir, 'state.json')) ? JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')) : {},
      (state) => 'other' in state && !('stray' in state),
    )
    await control.stop('SIGKILL')
  }
  const pid = Number(readFileSync(pidFile, 'utf8'))
  expect(await isAlive(pid)).toBe(true)
  await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
  expect(await isAlive(pid)).toBe(false)
  await control.fetch('/tasks/other/cancel', { method: 'POST' })
})

test('SIGTERM ends the service although nobody reads its log', async () => {
  using dir = tempDir()
  const child = Bun.spawn([await binary('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', dir.path], {
    ...{ cwd: dir.path, env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' },
  })
  const reader = child.stdout.getReader()
  const first = new TextDecoder().decode((await reader.read()).value)
  const { url } = JSON.parse(first.split('\n')[0]!) as { url: string }
  // A line for each, which are more than a pipe holds.
  const tasks = Array.from({ length: 2_000 }, (_, i) => ({ id: `t${i}`, type: 'os', tool_name: 'none' }))
  await fetch(`${url}/tasks?wait_ms=60000`, { method: 'POST', body: JSON.stringify({ tasks }) })
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('a start that fails for its address leaves no segment behind', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  await using other = await startControl()
  const { host } = new URL(other.url)
  mkdirSync(dataDir)
  for (let i = 0; i < 3; i++) await expect(startControl({ dataDir, flags: ['--addr', host] })).rejects.toThrow('in use')
  expect(segments(dataDir)).toEqual([])
})

test.skipIf(!canMount)('on a full disk no attempt that acts is started; it is once there is room', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  using disk = smallDisk(dataDir, 2 * 1024 * 1024)
  const [done, go] = [join(dir.path, 'done'), join(dir.path, 'go')]
  // Its outcome does not fit into the rest of the journal's last page.
  const gate = `while [ ! -e ${go} ]; do sleep 0.02; done; head -c 20000 /dev/zero | tr '\\0' x`
  await using control = await startControl({ dataDir, env: open, flags: NO_SNAPSHOT })
  await control.submit([
    { id: 'gate', type: 'shell', params: { script: gate } },
    { id: 'act', type: 'shell', params: { script: `echo "$TASKMILL_ATTEMPT" >> ${done}` }, depends_on: ['gate'] },
  ])
  await control.reached('gate', 'running')
  disk.fill()
  writeFileSync(go, '')
  expect((await control.ended('gate')).status).toBe('success') // its outcome went to the reserve
  await until(
    () => control.log.map(({ msg }) => String(msg)),
    (lines) => lines.some((line) => line.startsWith('cannot write the journal')),
  )
  expect([(await control.get('act')).status, existsSync(done)]).toEqual(['pending', false])

  disk.free()
  expect((await control.ended('act')).status).toBe('success')
  expect(readFileSync(done, 'utf8').trim().split('\n').length).toBe(1)
  await control.stop()
})

test('a pack that is gone, while the journal goes on from one, stops the start', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await using control = await startControl({ dataDir, flags: NO_SNAPSHOT })
    await control.run({ type: 'noop' })
    await control.stop(signal)
  }
  const packs = readdirSync(dataDir).filter((name) => name.startsWith('pack-'))
  for (const name of packs) {
    renameSync(join(dataDir, name), join(dir.path, name))
    await expect(startControl({ dataDir })).rejects.toThrow(
      /what came before .*\.log is gone, which holds only what came after it: put the missing pack or journal file back/,
    )
    symlinkSync(join(dir.path, 'nowhere'), join(dataDir, name))
    await expect(startControl({ dataDir })).rejects.toThrow(/cannot read the pack .*pack-.*: /)
    rmSync(join(dataDir, name))
    renameSync(join(dir.path, name), join(dataDir, name))
  }
  await using control = await startControl({ dataDir })
  expect((await control.list()).length).toBe(2)
  await control.stop()
})

test('a state file is read only where there is no log', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const stateFile = join(dataDir, 'state.json')
  {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '20ms'] })
    await control.submit([{ id: 'kept', type: 'noop' }])
    await until(
      () => segments(dataDir),
      (names) => names.length === 1 && names[0] !== 'journal-0000000001.log',
    )
    await control.stop('SIGKILL')
  }
  writeFileSync(stateFile, 'no JSON')
  {
    await using control = await startControl({ dataDir })
    expect((await control.list()).map(({ id }) => id)).toEqual(['kept'])
    await control.stop()
  }
  expect(Object.keys(JSON.parse(readFileSync(stateFile, 'utf8')))).toEqual(['kept'])
  for (const name of readdirSync(dataDir)) if (/^(pack|journal)-/.test(name)) rmSync(join(dataDir, name))
  await using control = await startControl({ dataDir })
  expect((await control.list()).map(({ id }) => id)).toEqual(['kept'])
  await control.stop()
})

test('a start that the system refuses says why in one line', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'results'), '')
  const child = Bun.spawn([await binary('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', dataDir], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
  expect(await new Response(child.stderr).text()).toMatch(/^taskmill-control: cannot start: .*results.*\n$/)
  expect(await child.exited).toBe(1)
})

test('a second service on the same data directory refuses to start and says why', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const control = await startControl({ dataDir })
  const pid = control.process.pid
  await expect(startControl({ dataDir })).rejects.toThrow(
    `the data directory ${dataDir} is in use by the process ${pid}: stop it, or choose another with --data-dir`,
  )
  await control.stop('SIGKILL')
  await control[Symbol.asyncDispose]()
  await using next = await startControl({ dataDir }) // the lock died with its holder
  expect((await next.fetch('/health')).status).toBe(200)
})
