/** Every example is accepted by real services and ends as its description says. */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { serveArtifacts } from '../../examples/demo/artifact-store.ts'
import { standInForCurl, withPreamble } from '../../examples/demo/curl.ts'
import { fillIn, hasPlaceholders } from '../../examples/demo/graph.ts'
import { runtimeResultOf } from '../../examples/demo/runtime-result.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { startRuntime } from '../support/runtime.ts'

const EXAMPLES = join(dirname(dirname(import.meta.dir)), 'examples')

/** Tasks that are meant to end otherwise than `success`. */
const OTHER_ENDINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'retry.json': { knock: 'failed', enter: 'skipped' },
}

const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.json'))
const textOf = (name: string) => readFileSync(join(EXAMPLES, name), 'utf8')
const complete = files.filter((name) => !hasPlaceholders(textOf(name)))
const forBothServices = files.filter((name) => textOf(name).includes('"runtime'))

test('only the graphs of the demo are incomplete', () => {
  expect(files.filter((name) => !complete.includes(name)).toSorted()).toEqual(['build.json', 'survey.json'])
})

test('the README of the examples names each of them', () => {
  const readme = readFileSync(join(EXAMPLES, 'README.md'), 'utf8')
  expect(files.filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
})

/** Submits the graph in the file `path` with the client, and gives its tasks once all have ended. */
async function run(control: Control, path: string): Promise<TaskRecord[]> {
  const submitted = await runClient(['submit', '--file', path], { url: control.url })
  expect(submitted.exitCode).toBe(0)
  const ids = submitted.envelope.data!.task_ids as string[]
  const { exitCode } = await runClient(['wait', ...ids, '--timeout', '50s'], { url: control.url })
  expect(exitCode).toBe(0)
  const tasks = await control.list()
  expect(tasks.every(({ status }) => isTerminal(status))).toBe(true)
  return tasks
}

const othersThanSuccess = (tasks: readonly TaskRecord[]): Readonly<Record<string, string>> =>
  Object.fromEntries(tasks.filter(({ status }) => status !== 'success').map(({ id, status }) => [id, status]))

test.each(complete.filter((name) => !forBothServices.includes(name)))('%s is accepted and ends', async (name) => {
  await using control = await startControl()
  const tasks = await run(control, join(EXAMPLES, name))
  expect(othersThanSuccess(tasks)).toEqual(OTHER_ENDINGS[name] ?? {})
  expect(readdirSync(control.cwd).filter((entry) => entry !== 'data')).toEqual([])
})

/** The code with which a task ends that wanted more memory than it may have, by the way in which it was limited. */
const outOfMemory = (task: TaskRecord): ErrorCode =>
  runtimeResultOf(task)!.execution_plan.resource_enforcement.oom_detection ? 'memory_limit_exceeded' : 'exit_nonzero'

describe.each([
  ['as this host is', []],
  ['without cgroups', ['--disable-cgroup']],
  ['without a sandbox', ['--disable-linux-sandbox']],
] as const)('over both services, %s', (_, flags) => {
  test('limits.json: each limit ends what exceeds it', async () => {
    await using runtime = await startRuntime({ flags })
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    const tasks = await run(control, join(EXAMPLES, 'limits.json'))
    const task = (id: string) => tasks.find((other) => other.id === id)!
    const ends = Object.fromEntries(tasks.map(({ id, status, runtime }) => [id, runtime?.error?.code ?? status]))
    const { sandbox } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    expect(ends).toEqual({
      'in-time': 'success',
      'too-slow': 'timeout',
      'too-busy': 'cpu_limit_exceeded',
      'too-large': outOfMemory(task('too-large')),
      'too-loud': 'success',
      'fenced-in-if-possible': 'success',
      'fenced-in-or-not-at-all': sandbox.linux_sandbox ? 'success' : 'denied',
    })
    expect(task('too-loud').result).toMatchObject({ stdout: 'a part of this i', stdout_truncated: true })
    const { logs, stdout } = runtimeResultOf(task('too-loud'))!
    expect(await (await fetch(logs.stdout)).text()).toStartWith(stdout)
    const fenced = runtimeResultOf(task('fenced-in-if-possible'))!
    const isFenced = fenced.execution_plan.effective_sandbox.profile === 'linux_sandbox'
    expect(fenced.stdout).toStartWith(isFenced ? 'fenced in: ' : 'not fenced in: ')
  })

  test('build.json: by hand, with a store of its own, it delivers the guide', async () => {
    await using runtime = await startRuntime({ flags })
    await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
    await using store = await serveArtifacts({ port: 0 })
    const path = join(control.cwd, 'graph.json')
    const graph = fillIn(textOf('build.json'), { STORE: store.url })
    writeFileSync(path, withPreamble(graph, standInForCurl(process.env.PATH) ?? ''))
    const tasks = await run(control, path)
    expect(othersThanSuccess(tasks)).toEqual({ 'draw-panorama': 'failed', 'hang-panorama': 'skipped' })
    const drawing = tasks.find(({ id }) => id === 'draw-panorama')!
    expect(drawing.runtime?.error?.code).toBe(outOfMemory(drawing))
    const packed = Bun.spawnSync(['tar', '-tzf', join(control.cwd, 'guide.tar.gz')]).stdout.toString()
    expect(packed.trimEnd().split('\n')).toEqual(['index.html', 'dawn.html', 'noon.html', 'dusk.html'])
  })
})

test('first.yaml: the README shows it, and its sandboxed step runs in a sandbox where the host has one', async () => {
  const readme = readFileSync(join(dirname(EXAMPLES), 'README.md'), 'utf8')
  expect(readme).toContain(`\`\`\`yaml\n# examples/first.yaml\n${textOf('first.yaml')}\`\`\``)
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const tasks = await run(control, join(EXAMPLES, 'first.yaml'))
  expect(othersThanSuccess(tasks)).toEqual({})
  const { sandbox } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
  const { execution_plan, stdout } = runtimeResultOf(tasks.find(({ id }) => id === 'untrusted')!)!
  expect(execution_plan.effective_sandbox.profile).toBe(sandbox.linux_sandbox ? 'linux_sandbox' : 'process')
  expect(stdout).toEndWith('500500\n')
})

test('os-mcp-runtime.json: the three kinds of tasks work together', async () => {
  await using runtime = await startRuntime()
  await using control = await startControl({ flags: ['--runtime-url', runtime.url] })
  const tasks = await run(control, join(EXAMPLES, 'os-mcp-runtime.json'))
  expect(othersThanSuccess(tasks)).toEqual({})
  expect(runtimeResultOf(tasks.find(({ id }) => id === 'count')!)!.stdout).toBe('500500\n')
})

test('retry.json: the letter is read at a later attempt, and the door is knocked on three times', async () => {
  await using control = await startControl()
  const { tasks } = JSON.parse(readFileSync(join(EXAMPLES, 'retry.json'), 'utf8'))
  await control.submit(tasks)
  await control.allEnded()
  expect((await control.get('read-letter')).attempt).toBeGreaterThan(1)
  const knock = await control.get('knock')
  expect(knock.attempt).toBe(3)
  expect(knock.error).toStartWith('task failed after all retries: ')
})
