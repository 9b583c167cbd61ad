/** `taskmill run` and `taskmill logs GRAPH`: what the tasks of a graph write, and why a graph failed. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { builtProgram as binary } from '../../scripts/build.ts'
import { type ClientOptions, runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { reading } from '../support/reading.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { startInTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

let control: Control
let temp: TempDir
const client = (args: readonly string[], options: ClientOptions = {}) =>
  runClient(args, { url: control.url, ...options })
const script = (id: string, text: string, more: object = {}) => ({
  ...{ id, type: 'shell', params: { script: text } },
  ...more,
})
const graphOf = (...tasks: object[]) => JSON.stringify({ scope: 'graph', tasks })
const run = (flags: readonly string[], tasks: readonly object[], env: Readonly<Record<string, string>> = {}) =>
  client(['run', ...flags], { stdin: graphOf(...tasks), env })

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
  const path = join(temp.path, crypto.randomUUID())
  return { wait: `until [ -e ${path} ]; do sleep 0.05; done`, go: () => Bun.write(path, '') }
}

/** A client that runs on. */
async function started(args: readonly string[], stdin = '') {
  const child = Bun.spawn([await binary('taskmill'), ...args], {
    env: testEnvironment({ SERVICE_URL: control.url }),
    stdin: new TextEncoder().encode(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const complaints = reading(new Response(child.stderr))
  const printed = new Response(child.stdout).text()
  return {
    stderr: () => complaints.state.received,
    shows: (text: string) =>
      until(
        () => complaints.state.received,
        (shown) => shown.includes(text),
      ),
    async ended() {
      const envelope = JSON.parse(await printed)
      await complaints.done
      return { exitCode: await child.exited, envelope }
    },
  }
}

const HOSTILE = "printf '\\033[2J\\033]0;owned\\007\\n'"
const HARMLESS = '\\e[2J\\e]0;owned\\u{7}'

/** The lines that tasks wrote, without those of the progress. */
const linesOf = (stderr: string) => stderr.split('\n').filter((line) => line.includes(' | '))

describe('run', () => {
  test('shows lines of tasks while they run, the last one also without its end', async () => {
    const signal = signalFile()
    const one = script('one', `echo first; echo oops >&2; ${signal.wait}; printf 'no\\nend'`)
    const follow = await started(['run'], graphOf(one, script('two', `${HOSTILE}; ${signal.wait}`)))
    await follow.shows('one | first\n')
    await follow.shows('one | oops\n')
    await follow.shows(`two | ${HARMLESS}\n`)
    await signal.go()
    expect(await follow.ended()).toMatchObject({ exitCode: 0, envelope: { ok: true, data: { state: 'success' } } })
    expect(linesOf(follow.stderr()).toSorted()).toEqual(
      ['one | first', 'one | oops', 'one | no', 'one | end', `two | ${HARMLESS}`].toSorted(),
    )
    expect(follow.stderr()).not.toContain('\x1b')
    expect(follow.stderr()).toContain('  one: success\n')
  })

  test('shows what children wrote, and nothing of an outcome that was reused', async () => {
    const children = { id: 'each', type: 'shell', for_each: ['x', 'y'] }
    const params = { command: 'echo', args: [{ $item: '' }] }
    const { stderr, envelope, exitCode } = await run([], [{ ...children, params }, script('bad', 'echo bad; exit 1')])
    expect(exitCode).toBe(1)
    expect(linesOf(stderr).toSorted()).toEqual(['bad | bad', 'each[0] | x', 'each[1] | y'])
    const again = await client(['rerun', String(envelope.data?.graph_id), '--follow'])
    expect(linesOf(again.stderr)).toEqual(['bad | bad'])
  })

  test('goes on with the next attempt', async () => {
    const signal = signalFile()
    const task = script('a', `echo "$TASKMILL_ATTEMPT" | sed 's/.*[/]//'; ${signal.wait}; exit 1`, { retry: 1 })
    const follow = await started(['run'], graphOf(task))
    await follow.shows('a | 1\n')
    await signal.go()
    expect((await follow.ended()).exitCode).toBe(1)
    expect(linesOf(follow.stderr())).toEqual(['a | 1', 'a | 2'])
  })

  const bad = script('bad', 'seq 30 >&2; echo out; exit 3')

  test('says why the graph failed, with the last 20 lines of standard error', async () => {
    const { exitCode, stderr, envelope } = await run(
      ['--logs', 'none'],
      [bad, { id: 'after', type: 'noop', depends_on: ['bad'] }],
    )
    const graphId = envelope.data?.graph_id
    const lines = Array.from({ length: 20 }, (_, i) => `  ${i + 11}\n`).join('')
    expect(exitCode).toBe(1)
    expect(stderr).toEndWith(
      `\nbad failed first: command failed: exit status 3; 1 skipped because of it\n${lines}` +
        `try: taskmill logs ${graphId}/bad\ntry: taskmill get ${graphId}/bad\ntry: taskmill graph ${graphId}\n`,
    )
    expect(linesOf(stderr)).toEqual([])
    expect(envelope.data).toMatchObject({ state: 'failed', root_cause: { task_id: 'bad', skipped: 1 } })
  })

  test('--logs errors shows the output of tasks that failed; --quiet shows the cause alone', async () => {
    const tasks = [script('good', 'echo good'), bad]
    const errors = await run(['--logs', 'errors'], tasks)
    expect(linesOf(errors.stderr)).toHaveLength(31)
    expect(errors.stderr).not.toContain('good | good')
    const quiet = await run(['-q'], tasks)
    expect(quiet.stderr).toStartWith('\nbad failed first: ')
    const quietGood = await run(['--quiet'], [script('good', 'echo good')])
    expect(quietGood).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await run(['--quiet', '--logs', 'all'], [script('good', 'echo good')])).toMatchObject({
      stderr: 'good | good\n',
    })
  })

  test('makes a group of each task for a CI server, in which no task gives orders', async () => {
    const tasks = [
      script('a%', 'echo ::error::x; echo "##[error]y"'),
      script('b', 'echo b; exit 1', { depends_on: ['a%'] }),
      script('silent', 'true'),
    ]
    const { stderr } = await run([], tasks, { CI: 'true', GITHUB_ACTIONS: 'true' })
    expect(stderr).toContain('::group::a%25 (success)\na% | ::error::x\na% | ##\\[error]y\n::endgroup::\n')
    expect(stderr).toContain('::group::b (failed)\nb | b\n::endgroup::\n')
    expect(stderr.match(/::group::/g)).toHaveLength(2)
    expect((await run([], tasks, { CI: 'false' })).stderr).not.toContain('::group::')
  })

  test('on a terminal shows lines above the frame, and obeys nothing', async () => {
    const file = join(temp.path, 'graph.json')
    await Bun.write(file, graphOf(script('a', `${HOSTILE}; echo ${'x'.repeat(300)}`)))
    const shown = await startInTerminal(['run', file], { url: control.url, env: { NO_COLOR: '1' } })
    expect(await shown.exited).toBe(0)
    expect(shown.output()).toContain(`a | ${HARMLESS}\r\n`)
    expect(shown.output()).toContain(`a | ${'x'.repeat(300)}\r\n`)
    expect(shown.output()).not.toContain('\x1b[2J')
  })
})

describe('logs of a graph', () => {
  const tasks = [script('a', 'echo one; echo two; echo err >&2'), script('b', 'true'), { id: 'c', type: 'noop' }]

  test('data has the output of its tasks', async () => {
    const { envelope } = await run(['-q'], tasks)
    const graphId = String(envelope.data?.graph_id)
    const a = { task_id: 'a', status: 'success', stdout: 'one\ntwo\n', stderr: 'err\n', truncated: false }
    const data = { graph_id: graphId, state: 'success', tasks: [a] }
    const printed = await client(['logs', graphId])
    expect(printed).toMatchObject({ exitCode: 0, stderr: '' })
    expect(printed.envelope).toEqual({ ok: true, data })
    const last = await client(['logs', graphId, '--tail', '1'])
    expect(last.envelope.data).toEqual({ ...data, tasks: [{ ...a, stdout: 'two\n' }] })
    expect((await client(['logs', graphId, '-o', 'table'])).stdout).toBe('a | one\na | two\na | err\n')
  })

  test('--follow shows all tasks until the graph has ended', async () => {
    const signal = signalFile()
    const submitted = await client(['submit'], {
      stdin: graphOf(script('a', `echo one; ${signal.wait}`), script('b', 'echo late', { depends_on: ['a'] })),
    })
    const follow = await started(['logs', String(submitted.envelope.data?.graph_id), '-f'])
    await follow.shows('a | one\n')
    await signal.go()
    expect(await follow.ended()).toMatchObject({
      exitCode: 0,
      envelope: { data: { state: 'success', tasks: [{ stdout: 'one\n' }, { task_id: 'b', stdout: 'late\n' }] } },
    })
    expect(follow.stderr()).toBe('a | one\nb | late\n')
  })

  test('Ctrl-C ends the client with what there is', async () => {
    const signal = signalFile()
    const submitted = await client(['submit'], { stdin: graphOf(script('a', `echo one; ${signal.wait}`)) })
    const graphId = String(submitted.envelope.data?.graph_id)
    const shown = await startInTerminal(['logs', graphId, '--follow'], { url: control.url, env: { NO_COLOR: '1' } })
    await until(shown.output, (text) => text.includes('a | one\r\n'))
    shown.type('\x03')
    expect(await shown.exited).toBe(130)
    expect(shown.output()).toContain('"stdout": "one\\n"')
    await signal.go()
    await client(['wait', graphId]) // or its shell would outlive the service and the file
  })
})

test.each(['run FILE -q --logs all', 'logs GRAPH --follow', 'logs GRAPH/a --follow'])(
  'a slow reader gets all of %s',
  async (command) => {
    const file = join(temp.path, 'large.json')
    const bytes = 200_000
    await Bun.write(file, graphOf(script('a', `head -c ${bytes} /dev/zero | tr '\\0' x | fold -w 99; echo`)))
    const submitted = await client(['submit', file])
    const graphId = String(submitted.envelope.data?.graph_id)
    await client(['wait', graphId])
    const args = command.replace('FILE', file).replace('GRAPH', graphId).split(' ')
    // A shell reads byte by byte.
    const piped = '"$@" 2>&1 >/dev/null | while read -r line; do echo "$line"; done | grep -o x | wc -l'
    const reader = Bun.spawn(['/bin/sh', '-c', piped, 'sh', await binary('taskmill'), ...args], {
      env: testEnvironment({ SERVICE_URL: control.url }),
    })
    expect((await new Response(reader.stdout).text()).trim()).toBe(String(bytes))
  },
)
