/** `taskmill logs`: the output of tasks, afterwards and while they write it. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startPair } from '../support/pair.ts'
import { reading } from '../support/reading.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { startInTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

let control: Control
let temp: TempDir
const client = (args: readonly string[]) => runClient(args, { url: control.url })
const newId = () => crypto.randomUUID()
const script = (text: string) => ({ id: newId(), type: 'shell', params: { script: text } })

beforeAll(async () => {
  temp = tempDir()
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

/** A file that a script waits for. */
const signalFile = () => {
  const path = join(temp.path, newId())
  return { wait: `until [ -e ${path} ]; do sleep 0.01; done`, go: () => Bun.write(path, '') }
}

const HOSTILE = "printf '\\033[2J\\033]0;owned\\007\\tend\\r\\n'"

describe('of a task that has ended', () => {
  test('data has both streams', async () => {
    const { id } = await control.run(script('echo one; echo two; echo err >&2'))
    const { exitCode, envelope, stderr } = await client(['logs', id])
    expect({ exitCode, envelope: envelope as object, stderr }).toEqual({
      exitCode: 0,
      envelope: { ok: true, data: { task_id: id, stdout: 'one\ntwo\n', stderr: 'err\n', truncated: false } },
      stderr: '',
    })
    expect((await client(['logs', id, '--tail', '1'])).envelope.data?.stdout).toBe('two\n')
  })

  test('--follow shows them on standard error as well', async () => {
    const { id } = await control.run(script('echo one'))
    const { exitCode, envelope, stderr } = await client(['logs', '-f', id])
    expect({ exitCode, stdout: envelope.data?.stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: 'one\n',
      stderr: 'one\n',
    })
  })

  test('-o table prints them as text', async () => {
    const { id } = await control.run(script(`echo one; echo err >&2; ${HOSTILE}`))
    const { stdout } = await client(['logs', id, '-o', 'table'])
    expect(stdout).toBe('one\n\\e[2J\\e]0;owned\\u{7}\tend\nerr\n')
  })

  test('GRAPH_ID/TASK_ID names a task of a graph with ids of its own', async () => {
    const task = script('echo scoped')
    const answer = await control.post({ scope: 'graph', tasks: [{ ...task, id: 'a/b' }] })
    const { graph_id } = (await answer.json()) as { graph_id: string }
    const name = `${graph_id}/a/b`
    expect((await client(['wait', name, '--fail'])).exitCode).toBe(0)
    const { envelope } = await client(['logs', name])
    expect(envelope.data).toEqual({ task_id: 'a/b', stdout: 'scoped\n', stderr: '', truncated: false })
    expect((await client(['get', name])).envelope.data).toMatchObject({ id: 'a/b', graph_id, status: 'success' })
    expect((await client(['logs', 'a/b'])).envelope.error?.status_code).toBe(404)
    expect((await client(['delete', name])).envelope.data).toEqual({ deleted: [name] })
  })

  test('of an unknown task is a failure without data', async () => {
    const { exitCode, envelope } = await client(['logs', 'nobody', '--follow'])
    expect({ exitCode, status: envelope.error?.status_code }).toEqual({ exitCode: 1, status: 404 })
    expect(envelope).not.toHaveProperty('data')
  })

  test.each([
    ['/x', 'there is no graph id before the slash'],
    ['x/', 'there is no task id after the slash'],
  ])('%s names no task, and no table is printed', async (id, missing) => {
    const { exitCode, stdout, stderr } = await client(['logs', id, '-o', 'table'])
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `taskmill: task not found: ${id} (${missing}: expected GRAPH_ID/TASK_ID)\n`,
    })
    expect((await client(['get', id])).envelope.error?.message).toContain(missing)
  })

  test('a task id may begin with a slash', async () => {
    const id = `/${newId()}`
    await control.run({ id, type: 'noop' })
    expect((await client(['get', id])).envelope.data).toMatchObject({ id })
  })
})

describe('of a running task', () => {
  test('are shown while they are written', async () => {
    const signal = signalFile()
    const task = script(`echo first; ${signal.wait}; echo last`)
    await control.submit([task])
    const child = Bun.spawn([await binary('taskmill'), 'logs', task.id, '--follow'], {
      env: testEnvironment({ SERVICE_URL: control.url }),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const reader = child.stderr.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first\n')
    await signal.go()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('last\n')
    expect(JSON.parse(await new Response(child.stdout).text())).toMatchObject({
      ok: true,
      data: { task_id: task.id, stdout: 'first\nlast\n' },
    })
    expect(await child.exited).toBe(0)
  })

  test('Ctrl-C ends the client with what there is, and a terminal obeys nothing', async () => {
    const signal = signalFile()
    const task = script(`${HOSTILE}; ${signal.wait}`)
    await control.submit([task])
    const run = await startInTerminal(['logs', '--follow', task.id], { url: control.url })
    await until(run.output, (output) => output.includes('end'))
    run.type('\x03')
    expect(await run.exited).toBe(130)
    expect(run.output()).toContain('\\e[2J\\e]0;owned\\u{7}\tend\r\n')
    expect(run.output()).not.toMatch(/(?![\r\n\t])\p{Cc}/u)
    expect((await control.get(task.id)).status).toBe('running')
    await signal.go()
    await control.ended(task.id) // or its shell would outlive the service and the file
  })
})

describe('through a kill of the service', () => {
  /** The address of a service that is started again there: nobody else gets it meanwhile. */
  const ownAddress = async () => ['--addr', `127.0.0.1:${await freePort()}`]

  test('the output of a runtime task goes on without a gap or a repetition', async () => {
    await using pair = await startPair({ controlFlags: await ownAddress() })
    await pair.script(
      'a',
      `printf 'one\\ntw'; ${waitFor(pair.file('go'))}; echo o; ${waitFor(pair.file('end'))}; echo three`,
    )
    const { url } = pair.control
    await pair.there('a', ({ stdout }) => stdout === 'one\ntw') // or --tail would have no last line to begin with
    const follow = await following(['logs', 'a', '--follow'], url)
    const tail = await following(['logs', 'a', '--follow', '--tail', '1'], url)
    await until(follow.stderr, (shown) => shown === 'one\ntw')
    await until(tail.stderr, (shown) => shown === 'tw')
    await pair.stopControl('SIGKILL')
    await Bun.write(pair.file('go'), '')
    await until(follow.stderr, (shown) => shown.includes('taskmill: connection lost, trying again: '))
    await pair.startControl()
    await until(follow.stderr, (shown) => shown.endsWith('\no\n'))
    // A second one, while the task ends.
    await pair.stopControl('SIGKILL')
    await Bun.write(pair.file('end'), '')
    await until(
      pair.runtime.resources.bind(pair.runtime),
      ({ active_reservations }) => active_reservations.length === 0,
    )
    await pair.startControl()
    expect((await follow.ended()).data).toEqual({
      ...{ task_id: 'a', stdout: 'one\ntwo\nthree\n', stderr: '', truncated: false },
    })
    expect((await tail.ended()).data?.stdout).toBe('two\nthree\n')
    const note = '(?:taskmill: connection lost, trying again: .*\\n)+'
    expect(follow.stderr()).toMatch(new RegExp(`^one\\ntw\\n${note}o\\n${note}three\\n$`))
  })

  test('the output of a local task goes on with its next attempt', async () => {
    const dataDir = join(temp.path, newId())
    const options = { dataDir, env: { SERVICE_SHELL_POLICY: 'open' }, flags: await ownAddress() }
    await using before = await startControl(options)
    const signal = signalFile()
    const once = join(temp.path, newId())
    const task = script(
      `echo "$TASKMILL_ATTEMPT" | sed 's/.*[/]//'; [ -e ${once} ] || { touch ${once}; exec sleep 600; }; ${signal.wait}`,
    )
    await before.submit([task])
    const follow = await following(['logs', task.id, '-f'], before.url)
    await until(follow.stderr, (shown) => shown === '1\n')
    await until(() => Bun.file(once).exists())
    await before.stop('SIGKILL')
    await using _after = await startControl(options)
    await until(follow.stderr, (shown) => shown.endsWith('\n2\n'))
    await signal.go()
    expect(await follow.ended()).toMatchObject({ ok: true, data: { stdout: '1\n2\n' } })
  })

  test('the rest is asked for after the last byte, not after the last line', async () => {
    const asked: string[] = []
    using server = service((request) => {
      const { pathname, searchParams } = new URL(request.url)
      if (!pathname.endsWith('/logs')) {
        return Response.json({ id: 'a', attempt: 3, status: asked.length < 4 ? 'running' : 'success' })
      }
      asked.push(String(searchParams))
      const offset = searchParams.get('offset') ?? '20'
      const headers = { 'x-task-attempt': '3', 'x-log-offset': offset }
      return new Response(searchParams.get('stream') === 'stderr' ? '' : `${offset} é`, { headers })
    })
    const { exitCode, envelope } = await runClient(['logs', 'a', '--follow', '--tail', '7'], { url: server.url })
    expect({ exitCode, stderr: envelope.data?.stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(envelope.data?.stdout).toStartWith('20 é25 é')
    expect(asked).toContain('stream=stdout&follow=attempt&tail=7')
    expect(asked).toContain('stream=stdout&follow=attempt&attempt=3&offset=25')
    expect(asked).toContain('stream=stderr&follow=attempt&attempt=3&offset=20')
  })
})

/** A client that runs. `ended` gives what it printed, once it has exited with 0. */
async function following(args: readonly string[], url: string) {
  const child = Bun.spawn([await binary('taskmill'), ...args], {
    env: testEnvironment({ SERVICE_URL: url }),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const complaints = reading(new Response(child.stderr))
  const printed = new Response(child.stdout).text()
  return {
    stderr: () => complaints.state.received,
    async ended(): Promise<{ ok: boolean; data?: { stdout?: string } }> {
      const text = await printed
      await complaints.done
      expect({ exitCode: await child.exited, text }).toMatchObject({ exitCode: 0 })
      return JSON.parse(text)
    },
  }
}

/** A server of the test that is not ours. */
function service(answer: (request: Request) => Response): { url: string } & Disposable {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answer })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) }
}

test('of a task that wrote nothing, as a table, leave a file as it is to which the shell appends', async () => {
  const task = script('true')
  await control.submit([task])
  await control.ended(task.id)
  const file = join(temp.path, newId())
  await Bun.write(file, 'before\n')
  const command = [await binary('taskmill'), 'logs', task.id, '-o', 'table']
  const child = Bun.spawn(['/bin/sh', '-c', `exec "$@" >> ${file}`, 'sh', ...command], {
    env: testEnvironment({ SERVICE_URL: control.url }),
  })
  expect(await child.exited).toBe(0)
  expect(await Bun.file(file).text()).toBe('before\n')
})
