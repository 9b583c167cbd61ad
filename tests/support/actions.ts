/** Actions of every kind, for tables and for property tests. */
import fc from 'fast-check'
import { decodeRequest } from '../../control/adapter-v1/request.ts'
import { type Translation, translate } from '../../control/adapter-v1/translate.ts'
import { actionInputs } from '../../control/operations/action-inputs.ts'
import { ACTION_KINDS, type ActionKind } from '../../shared/contract/adapter-v1.ts'
import { ServiceError } from '../../shared/contract/errors.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { runSync } from '../../shared/process/steps.ts'
import { randomGraph } from './random-graph.ts'

/** The id of a task whose request has none. */
export const NEW_TASK_ID = 'adapter-new'

/** The translation of a body, by the schemas of the real executors. */
export function translation(body: unknown): Translation {
  const bytes = new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body))
  return runSync(
    translate(runSync(decodeRequest(bytes, 'refuse')), {
      newTaskId: NEW_TASK_ID,
      inputs: actionInputs,
      unknownFields: 'refuse',
    }),
  )
}

/** The tasks that a body becomes, annotations included. */
export function tasksOf(body: unknown): TaskInput[] {
  const { tasks, annotate } = translation(body)
  return tasks.map(annotate)
}

/** The text of the 400 that `work` must end with. */
export function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof ServiceError && error.status === 400) return error.message
    throw error
  }
  throw new Error('it was accepted')
}

/** An action of each kind that nothing is wrong with. */
export const SAMPLES: Readonly<Record<ActionKind, { readonly tool_name?: string; readonly input?: object }>> = {
  'os.shell': { input: { command: 'echo', args: ['hi'] } },
  'os.file': { input: { action: 'stat', path: '.' } },
  'os.http': { input: { url: 'http://127.0.0.1:9/', headers: { accept: 'text/plain' } } },
  'os.dns': { input: { name: 'localhost', record: 'ip' } },
  'os.tcp': { input: { address: '127.0.0.1:9', timeout_ms: 100 } },
  'os.sleep': { input: { duration_ms: 1 } },
  'os.noop': { input: { message: 'hi' } },
  'runtime.command': { input: { program: 'true', args: ['a'], env: { CI: '1' }, limits: { wall_time_ms: 1000 } } },
  'runtime.script': { input: { script: 'exit 0', interpreter: ['/bin/sh', '-e'] } },
  'mcp.call': { tool_name: 'builtin/echo', input: { text: 'hi' } },
  'cli.run': { input: { command: 'wc', args: ['-l'], stdin: 'a\n' } },
  'task_graph.submit': { input: { tasks: [{ id: 'a', type: 'noop' }] } },
}

const name = fc.string({ minLength: 1 }).filter((text) => text.trim() !== '')
const texts = fc.array(fc.string(), { maxLength: 3 })
const textMap = fc.dictionary(fc.oneof(fc.constantFrom('__proto__', 'toString', 'adapter'), fc.string()), fc.string(), {
  maxKeys: 4,
})
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const record = (model: Record<string, fc.Arbitrary<unknown>>) => fc.record(model, { requiredKeys: [] })
const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 3 })

const runtimeRest = {
  limits: some(record({ wall_time_ms: fc.integer({ min: 1 }), pids_max: some(fc.integer({ min: 1 })) })),
  sandbox: record({ profile: fc.constantFrom('process', 'linux_sandbox'), namespaces: record({ net: fc.boolean() }) }),
  policy: record({ capability_mode: fc.constantFrom('adaptive', 'strict') }),
  control_context: record({ tenant: name, labels: textMap }),
  metadata: textMap,
}

const runtimeInput = (main: string, fields: Record<string, fc.Arbitrary<unknown>>) => {
  const own = record(fields).chain((given) => name.map((value) => ({ ...given, [main]: value })))
  const whole = fc.tuple(own, record(runtimeRest)).map(([execution, rest]) => ({ ...rest, execution }))
  return fc.oneof(
    whole,
    fc.tuple(own, record(runtimeRest)).map(([flat, rest]) => ({ ...rest, ...flat })),
  )
}

const graphTask = { retry: fc.nat(3), timeout: fc.integer({ min: -1, max: 1000 }), annotations: textMap, input: json }
const graph = fc
  .tuple(randomGraph(), fc.array(record(graphTask), { minLength: 16, maxLength: 16 }))
  .map(([tasks, more]) => tasks.map((task, i) => ({ ...more[i], ...task })))

const INPUTS: Readonly<Record<ActionKind, fc.Arbitrary<{ tool_name?: string | null; input?: object | null }>>> = {
  'os.shell': fc
    .tuple(name, record({ args: some(texts), dir: some(fc.string()) }))
    .map(([command, more]) => ({ input: { command, ...more } })),
  'os.file': fc
    .record({ action: fc.constantFrom('read', 'write', 'delete'), path: name, content: some(fc.string()) })
    .map((input) => ({ input })),
  'os.http': fc.record({ url: name, headers: some(textMap) }).map((input) => ({ input })),
  'os.dns': fc.record({ name: fc.domain(), record: some(fc.constantFrom('ip', 'mx')) }).map((input) => ({ input })),
  'os.tcp': fc
    .record({ address: name, timeout_ms: some(fc.integer({ min: 1, max: 60_000 })) })
    .map((input) => ({ input })),
  'os.sleep': some(record({ duration_ms: some(fc.nat(600_000)) })).map((input) => ({ input })),
  'os.noop': some(record({ message: some(fc.string()) })).map((input) => ({ input })),
  'runtime.command': runtimeInput('program', { args: texts, env: textMap }).map((input) => ({ input })),
  'runtime.script': runtimeInput('script', { interpreter: texts, env: textMap }).map((input) => ({ input })),
  'mcp.call': fc.oneof(
    fc.record({ tool_name: name, input: some(json) }),
    fc.record({ tool: name, arguments: some(json) }).map((input) => ({ input })),
  ),
  'cli.run': fc.oneof(
    fc.record({ tool_name: name, input: some(record({ args: texts })) }),
    fc.record({ command: name, args: some(texts), stdin: some(fc.string()) }).map((input) => ({ input })),
  ),
  'task_graph.submit': fc.oneof(
    graph.map((tasks) => ({ input: { tasks } })),
    graph.map((tasks) => ({ input: { task_graph: { tasks } } })),
  ),
}

const randomCase = (kind: string) =>
  fc
    .array(fc.boolean(), { minLength: kind.length, maxLength: kind.length })
    .map((upper) => [...kind].map((letter, i) => (upper[i] ? letter.toUpperCase() : letter)).join(''))

/** A request of any kind that nothing is wrong with, written in odd ways. */
export const randomAction = fc.constantFrom(...ACTION_KINDS).chain((kind) => {
  const taskFields = {
    depends_on: some(fc.array(fc.string(), { maxLength: 2 })),
    retry: some(fc.nat(5)),
    timeout: some(fc.integer()),
  }
  return fc
    .record({
      audit: record({
        adapter: some(fc.string()),
        agent_id: some(fc.string()),
        session_id: some(fc.string()),
        action_id: some(fc.string().map((id) => `id ${id}`)),
        metadata: some(textMap),
        'x-more': fc.jsonValue(),
      }),
      kind: randomCase(kind),
      input: INPUTS[kind],
      task: kind === 'task_graph.submit' ? fc.constant({}) : record(taskFields),
    })
    .map(({ audit, task, input, kind: asked }) => ({
      kind,
      body: { ...audit, action: { ...task, ...input, kind: asked } },
    }))
})
