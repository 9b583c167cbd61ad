/**
 * Keeps the data of this version for the tests of later ones: `bun tests/support/keep-data.ts` writes
 * `tests/data/<version>/`. Called once for each release; what is there is never written again.
 *
 * Both services run graphs that use every kind of record. Control is then stopped, which writes the state file, started
 * again, given more graphs, and killed, which leaves them in the journal.
 */
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { VERSION } from '../../shared/process/version.ts'
import { type Control, startControl } from './control.ts'
import { startRuntime } from './runtime.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

export const KEPT_DATA = join(import.meta.dir, '..', 'data')

/** What the data of a version hold. */
export interface KeptData {
  /** `graph name/task id` to status. */
  readonly statuses: Readonly<Record<string, string>>
  /** The graph that was submitted with an idempotency key. */
  readonly graph_id: string
  readonly runtime_tasks: Readonly<Record<string, string>>
}

const shell = (id: string, args: readonly string[], more: object = {}) => ({
  ...{ id, type: 'shell', params: { command: 'echo', args } },
  ...more,
})
const scoped = (name: string, tasks: readonly object[], more: object = {}) => ({ name, scope: 'graph', tasks, ...more })

/** Graphs that end before the state file is written. */
export const FIRST = [
  { name: 'plain', tasks: [shell('a', ['one']), shell('b', ['two'], { depends_on: ['a'] })] },
  scoped('failing', [
    { id: 'bad', type: 'os', tool_name: 'no-such-tool', retry: 1 },
    shell('lost', ['x'], { depends_on: ['bad'] }),
    shell('clean', ['x'], { depends_on: ['bad'], run_if: 'always' }),
  ]),
  scoped(
    'values',
    [
      shell('from', ['[1,2,3]']),
      shell('map', ['n'], { for_each: [1, 2, 3] }),
      shell('to', [{ $param: 'word' }, { $from: 'from', path: '/result/stdout' }] as never, { depends_on: ['from'] }),
    ],
    { params: { word: 'ü' }, labels: { team: 'data' } },
  ),
  scoped('large', [shell('large', ['x'.repeat(120_000)])]),
  scoped('processes', [
    { id: 'script', type: 'runtime.script', params: { script: 'echo hello; echo trouble >&2' } },
    { id: 'exit', type: 'runtime.script', params: { script: 'exit 3' } },
  ]),
]

/** Graphs that only the journal has. */
export const SECOND = [
  { name: 'again', tasks: [shell('a', ['other'])] }, // takes the id of an earlier graph
  scoped('asked', [
    { id: 'sure', type: 'approval', params: { message: 'really?' } },
    shell('after', ['done'], { depends_on: ['sure'] }),
  ]),
  scoped('cached', [shell('cached', ['kept'], { cache: { key: 'k' } })]),
]

interface Page {
  readonly tasks: readonly { readonly task_id: string; readonly status: string }[]
}

/** `graph name/task id` to status of every task of every graph. */
export async function statusesOf(control: Control): Promise<Record<string, string>> {
  const json = async (path: string) => (await control.fetch(path)).json()
  const graphs = (await json('/graphs?limit=100')) as { graph_id: string; name: string }[]
  const statuses: [string, string][] = []
  for (const { graph_id, name } of graphs) {
    const { tasks } = (await json(`/graphs/${graph_id}`)) as { tasks: { id: string; status: string }[] }
    statuses.push(...tasks.map(({ id, status }): [string, string] => [`${name}/${id}`, status]))
  }
  return Object.fromEntries(statuses.toSorted())
}

export async function runtimeStatuses(url: string): Promise<Record<string, string>> {
  const { tasks } = (await (await fetch(`${url}/api/v1/tasks`)).json()) as Page
  // The ids have that of the graph, which is another one in each run.
  return Object.fromEntries(tasks.map(({ task_id, status }) => [task_id.replace(/-.*/, ''), status]).toSorted())
}

/** Waits until all tasks have ended but those that wait for an approval. */
export const settled = (control: Control): Promise<Record<string, string>> =>
  until(
    () => statusesOf(control),
    (statuses) =>
      Object.entries(statuses).every(
        ([id, status]) => /^(success|failed|skipped|cancelled)$/.test(status) || id.startsWith('asked/'),
      ),
  )

async function keep(): Promise<void> {
  const target = join(KEPT_DATA, VERSION)
  if (existsSync(target)) throw new Error(`${target} is there already: data of a version are written once`)
  using dir = tempDir()
  const [controlDir, runtimeDir] = [join(dir.path, 'control'), join(dir.path, 'runtime')]
  await using runtime = await startRuntime({ dataDir: runtimeDir })
  const start = () =>
    startControl({ dataDir: controlDir, flags: ['--runtime-url', runtime.url, '--persist-interval', '1h'] })
  const submit = async (control: Control, graph: object) => {
    const response = await control.post(graph)
    if (response.status !== 202) throw new Error(await response.text())
  }
  let graph_id = ''
  {
    await using control = await start()
    for (const graph of FIRST) await submit(control, graph)
    const answer = await control.post(scoped('keyed', [shell('once', ['x'])]), { 'Idempotency-Key': 'kept' })
    graph_id = ((await answer.json()) as { graph_id: string }).graph_id
    await settled(control)
    await control.stop()
  }
  let statuses: Record<string, string>
  {
    await using control = await start()
    for (const graph of SECOND) await submit(control, graph)
    statuses = await settled(control)
    await control.stop('SIGKILL')
  }
  const runtime_tasks = await runtimeStatuses(runtime.url)
  await runtime.stop()
  copy(controlDir, join(target, 'control'))
  copy(runtimeDir, join(target, 'runtime'))
  const kept: KeptData = { statuses, graph_id, runtime_tasks }
  writeFileSync(join(target, 'kept.json'), `${JSON.stringify(kept, null, 2)}\n`)
}

/** Files that a start makes anew. */
const MADE_ANEW = /^(lock|reserve|runtime\.lock|launchers(\.log)?|launcher-.*)$/

function copy(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !MADE_ANEW.test(basename(path)) && !lstatSync(path).isFIFO() })
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(to)) if (/^journal-/.test(name)) cutPreallocated(join(to, name))
}

/** Removes the zeros behind the last frame, which take a megabyte. */
function cutPreallocated(path: string): void {
  const bytes = readFileSync(path)
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length--
  truncateSync(path, length)
}

if (import.meta.main) await keep()
