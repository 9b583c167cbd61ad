/**
 * The floor of control: the minimal work of a server of this API on Bun, as an upper bound of what control can reach.
 *
 * It uses Bun.serve, JSON.parse, a counter of open dependencies per task, and records in memory. It does not check
 * bodies, runs every task as a no-op, never yields while it works on a graph, does not log and writes no state file.
 * With `--journal FILE` a graph is on the disk before its 202, and a start reads all graphs of that file.
 *
 * Usage: floor --port N [--journal FILE]
 */
import { existsSync, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { HealthResponse, MetricsResponse } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { Journal } from '../journal.ts'

interface FloorTask {
  readonly id: string
  readonly type: string
  readonly depends_on?: readonly string[]
  retry: number
  graph_id: string
  status: 'pending' | 'success'
  result: unknown
  created_at: number
  updated_at: number
}

const { values } = parseArgs({ options: { port: { type: 'string' }, journal: { type: 'string' } } })
const startedAt = performance.now()
const tasks = new Map<string, FloorTask>()
const byType = new Map<string, number>()
let succeeded = 0

/** Marks the tasks of one graph as successful, each after those that it depends on. */
function run(graph: FloorTask[], graphId: string): void {
  const now = Date.now()
  const missing = new Uint32Array(graph.length)
  const positions = new Map<string, number>()
  const dependents: (number[] | undefined)[] = new Array(graph.length)
  for (let i = 0; i < graph.length; i++) positions.set(graph[i]!.id, i)
  const ready: number[] = []
  for (let i = 0; i < graph.length; i++) {
    const task = graph[i]!
    task.retry ??= 0
    task.graph_id = graphId
    task.status = 'pending'
    task.created_at = now
    tasks.set(task.id, task)
    byType.set(task.type, (byType.get(task.type) ?? 0) + 1)
    for (const id of task.depends_on ?? []) {
      const dependency = positions.get(id)!
      missing[i]!++
      dependents[dependency] ??= []
      dependents[dependency].push(i)
    }
    if (missing[i] === 0) ready.push(i)
  }
  for (let at = 0; at < ready.length; at++) {
    const task = graph[ready[at]!]!
    task.status = 'success'
    task.result = { ok: true, message: '' }
    task.updated_at = now
    for (const i of dependents[ready[at]!] ?? []) if (--missing[i]! === 0) ready.push(i)
  }
  succeeded += ready.length
}

const record = (task: FloorTask) => ({
  ...task,
  created_at: new Date(task.created_at).toISOString(),
  updated_at: new Date(task.updated_at).toISOString(),
})

if (values.journal !== undefined && existsSync(values.journal)) {
  for (const line of readFileSync(values.journal, 'utf8').trimEnd().split('\n')) {
    const { graph_id, body } = JSON.parse(line)
    run(body.tasks, graph_id)
  }
}

const journal = values.journal === undefined ? undefined : new Journal(values.journal)

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(values.port),
  routes: {
    '/tasks': {
      POST: async (request) => {
        const text = await request.text()
        const graph: FloorTask[] = JSON.parse(text).tasks
        const graphId = crypto.randomUUID()
        if (journal !== undefined) await journal.append(`{"graph_id":"${graphId}","body":${text}}\n`)
        run(graph, graphId)
        const answer: SubmitResponse = {
          accepted: graph.length,
          task_ids: graph.map((task) => task.id),
          graph_id: graphId,
        }
        return Response.json(answer, { status: 202 })
      },
      GET: () => Response.json([...tasks.values()].map(record)),
    },
    '/tasks/:id': {
      GET: (request) => {
        const task = tasks.get(request.params.id)
        return task === undefined
          ? Response.json({ error: `task not found: ${request.params.id}` }, { status: 404 })
          : Response.json(record(task))
      },
    },
    '/health': () => {
      const uptime = `${Math.floor((performance.now() - startedAt) / 1000)}s`
      return Response.json({ status: 'ok', version: 'v1.0.0', uptime } satisfies HealthResponse)
    },
    '/metrics': () =>
      Response.json({
        tasks_total: tasks.size,
        tasks_running: 0,
        tasks_succeeded: succeeded,
        tasks_failed: 0,
        by_type: Object.fromEntries(byType),
      } satisfies MetricsResponse),
  },
})
