/**
 * The floor of watching: the minimal work of a server that sends each change to its clients.
 *
 * Like the floor of control with a journal, it uses Bun.serve, JSON.parse, records in memory, and one `fdatasync` for
 * all graphs that arrive together. Once a graph is on disk, its events are encoded as one text, which is written to
 * every open stream. The floor keeps no past events, does not wait for slow clients, and has no filters in lists. Its
 * page draws plain boxes and lines.
 *
 * Usage: floor --port N --journal FILE
 */
import { parseArgs } from 'node:util'
import type { HealthResponse } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { Journal } from '../journal.ts'

interface FloorTask {
  readonly id: string
  readonly type: string
  readonly depends_on?: readonly string[]
  readonly graph_id: string
  readonly status: 'success'
  readonly created_at: string
}

interface FloorGraph {
  readonly graph_id: string
  readonly state: 'success'
  readonly task_count: number
  readonly counts: { readonly success: number }
  readonly created_at: string
}

type Stream = ReadableStreamDirectController

const { values } = parseArgs({ options: { port: { type: 'string' }, journal: { type: 'string' } } })
const startedAt = performance.now()
const journal = new Journal(values.journal!)
const encoder = new TextEncoder()
const tasks: FloorTask[] = []
const graphs: FloorGraph[] = []
const tasksOf = new Map<string, readonly FloorTask[]>()
const streamsOfAll = new Set<Stream>()
const streamsOf = new Map<string, Set<Stream>>()
let seq = 0

const PAGE_SIZE = 100

async function submit(text: string): Promise<SubmitResponse> {
  const graph_id = crypto.randomUUID()
  const created_at = new Date().toISOString()
  await journal.append(`{"graph_id":"${graph_id}","body":${text}}\n`)
  const graph: FloorTask[] = JSON.parse(text).tasks.map((task: Pick<FloorTask, 'id' | 'type'>) => ({
    ...{ ...task, graph_id, status: 'success', created_at },
  }))
  for (const task of graph) tasks.push(task)
  tasksOf.set(graph_id, graph)
  graphs.push({ graph_id, state: 'success', task_count: graph.length, counts: { success: graph.length }, created_at })
  if (streamsOfAll.size > 0 || streamsOf.has(graph_id)) tell(graph_id, created_at, graph)
  return { accepted: graph.length, task_ids: graph.map(({ id }) => id), graph_id }
}

function tell(graph_id: string, at: string, graph: readonly FloorTask[]): void {
  const events = [
    eventText('graph_accepted', { graph_id, at, task_count: graph.length }),
    ...graph.map(({ id, type }) => eventText('task_changed', { graph_id, at, task_id: id, type, status: 'success' })),
    eventText('graph_ended', { graph_id, at, state: 'success', counts: { success: graph.length } }),
  ]
  const bytes = encoder.encode(events.join(''))
  for (const streams of [streamsOfAll, streamsOf.get(graph_id) ?? []]) {
    for (const stream of streams) {
      stream.write(bytes)
      stream.flush()
    }
  }
}

function eventText(event: string, payload: object): string {
  seq++
  return `id: ${seq}\nevent: ${event}\ndata: ${JSON.stringify({ seq, ...payload })}\n\n`
}

function streamIn(streams: Set<Stream>): Response {
  let stream: Stream
  const body = new ReadableStream({
    type: 'direct',
    pull(controller) {
      stream = controller
      streams.add(stream)
      stream.write(': open\n\n')
      stream.flush()
    },
    cancel: () => {
      streams.delete(stream)
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const PAGE = `<!doctype html><title>floor</title><body><script type="module">
const graph = await (await fetch('/graphs/' + location.hash.split('/')[2])).json()
performance.mark('taskmill:data')
const places = new Map(graph.tasks.map(({ id }, i) => [id, [i % 25 * 48, Math.floor(i / 25) * 36]]))
const lines = graph.tasks.flatMap(({ id, depends_on = [] }) => depends_on.map((from) => {
  const [[x1, y1], [x2, y2]] = [places.get(from), places.get(id)]
  return '<path fill="none" stroke="gray" d="M' + x1 + ' ' + y1 + 'L' + x2 + ' ' + y2 + '"/>'
}))
const boxes = Array.from(places, ([id, [x, y]]) => '<g transform="translate(' + x + ' ' + y + ')">' +
  '<rect width="40" height="24" rx="4" fill="white" stroke="green"/><text y="16" font-size="8">' + id + '</text></g>')
document.body.innerHTML = '<svg width="1200" height="800">' + lines.join('') + boxes.join('') + '</svg>'
requestAnimationFrame(() => setTimeout(() => performance.mark('taskmill:drawn')))
</script>`

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(values.port),
  idleTimeout: 0,
  routes: {
    '/': () => new Response(PAGE, { headers: { 'content-type': 'text/html' } }),
    '/events': () => streamIn(streamsOfAll),
    '/graphs': () => Response.json(graphs.slice(-PAGE_SIZE).reverse()),
    '/graphs/:id': ({ params }) => Response.json({ graph_id: params.id, tasks: tasksOf.get(params.id) }),
    '/graphs/:id/events': ({ params }) => {
      const streams = streamsOf.get(params.id) ?? new Set()
      streamsOf.set(params.id, streams)
      return streamIn(streams)
    },
    '/tasks': {
      POST: async (request) => Response.json(await submit(await request.text()), { status: 202 }),
      GET: () => Response.json(tasks.slice(0, PAGE_SIZE)),
    },
    '/metrics': () => Response.json({ tasks_succeeded: tasks.length }),
    '/health': () => {
      const uptime = `${Math.floor((performance.now() - startedAt) / 1000)}s`
      return Response.json({ status: 'ok', version: 'v1.0.0', uptime } satisfies HealthResponse)
    },
  },
})
