/** Measures how soon clients hear of changes, and holds streams open while something else is measured. */
import { cpuMs } from '../process-stats.ts'
import { percentile } from '../statistics.ts'
import { Connection, withPatience } from './connection.ts'
import { type EventStream, openEventStreams } from './event-stream.ts'
import type { EventsResult, Jobs } from './jobs.ts'
import { postTasks, wide } from './requests.ts'

/** Milliseconds between two graphs: longer than a graph takes, and never the same twice in a row. */
const pauseMs = (i: number): number => 10 + ((i * 7) % 20)

export async function events(job: Jobs['events']['input']): Promise<EventsResult> {
  const { url, pid, clients, graphs, warmUpGraphs, prefix } = job
  using connection = await Connection.open(url)
  const streams = await openEventStreams(url, ['/events'], clients)
  try {
    await submitAndHear(warmUpGraphs, `${prefix}-warm`, () => 0)
    Bun.gc(true) // ours must not fall into the measurement
    for (const stream of streams) stream.keepPieces()
    const cpuBefore = pid === undefined ? null : cpuMs(pid)
    await submitAndHear(graphs, prefix, pauseMs)
    const serverCpuMs = cpuBefore === null ? null : (cpuMs(pid!) - cpuBefore) / graphs
    const delays = Float64Array.from(streams.flatMap((stream) => stream.delays())).sort()
    return { p50Ms: percentile(delays, 0.5), p99Ms: percentile(delays, 0.99), count: delays.length, serverCpuMs }
  } finally {
    for (const stream of streams) stream[Symbol.dispose]()
  }

  async function submitAndHear(count: number, idStart: string, pause: (i: number) => number): Promise<void> {
    const heard = allTold(streams, count)
    for (let i = 0; i < count; i++) {
      await connection.expect(202, postTasks(wide(`${idStart}-${i}`, 1)))
      if (pause(i) > 0) await Bun.sleep(pause(i))
    }
    await heard
  }
}

const allTold = (streams: readonly EventStream[], graphs: number): Promise<unknown> =>
  withPatience(`the end of ${graphs} graphs`, Promise.all(streams.map((stream) => stream.told(graphs))))

let open: EventStream[] = []

export async function openStreams({ url, paths, count }: Jobs['streams-open']['input']): Promise<null> {
  open = await withPatience('opening the streams', openEventStreams(url, paths, count))
  return null
}

export async function toldStreams({ graphs }: Jobs['streams-told']['input']): Promise<null> {
  await allTold(open, graphs)
  return null
}

export async function closeStreams(): Promise<null> {
  for (const stream of open) stream[Symbol.dispose]()
  open = []
  return null
}
