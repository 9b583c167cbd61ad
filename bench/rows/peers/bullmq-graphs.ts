/**
 * Runs jobs that do nothing through BullMQ and writes how many milliseconds each run took, from the first job added to
 * the end of the last.
 *
 * Usage: bullmq-graphs.ts LIBRARY PORT wide|chain JOBS RUNS OUT
 */

/** What is used of the library, which is no dependency of the project. */
interface BullMq {
  readonly Queue: new (name: string, options: object) => { addBulk(jobs: object[]): Promise<unknown> } & Closable
  readonly FlowProducer: new (options: object) => { add(flow: object): Promise<unknown> } & Closable
  readonly Worker: new (
    name: string,
    work: () => Promise<void>,
    options: object,
  ) => { on(event: 'completed', listener: () => void): unknown } & Closable
}

interface Closable {
  close(): Promise<void>
}

/** Jobs that one call adds, and that the worker has at a time. */
const BULK = 1_000
const CONCURRENCY = 50

/** Runs before those that count; a large graph warms itself up. */
const WARM_UPS = 1
const LARGE_JOBS = 10_000

const [library, port, shape, jobs, runs, out] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
  string,
]
const { Queue, FlowProducer, Worker } = (await import(library)) as BullMq
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null }
const count = Number(jobs)
const queueName = `${shape}-${count}`

let left = 0
let ended = Promise.withResolvers<void>()
const worker = new Worker(queueName, async () => {}, { connection, concurrency: CONCURRENCY })
worker.on('completed', () => {
  if (--left === 0) ended.resolve()
})
const queue = new Queue(queueName, { connection })
const flows = new FlowProducer({ connection })
const times: number[] = []
const warmUps = count < LARGE_JOBS ? WARM_UPS : 0
for (let run = 0; run < warmUps + Number(runs); run++) {
  left = count
  ended = Promise.withResolvers()
  const start = performance.now()
  if (shape === 'chain') await flows.add(flowOf(count))
  else for (let at = 0; at < count; at += BULK) await queue.addBulk(bulk(Math.min(BULK, count - at)))
  await ended.promise
  if (run >= warmUps) times.push(performance.now() - start)
}
await Bun.write(out, JSON.stringify(times))
await Promise.all([worker.close(), queue.close(), flows.close()])
process.exit(0)

function bulk(size: number): object[] {
  return Array.from({ length: size }, () => ({ name: 'noop', data: {} }))
}

/** A job that waits for one child, which waits for one, and so on. */
function flowOf(length: number): object {
  let flow: object = { name: 'noop', queueName }
  for (let i = 1; i < length; i++) flow = { name: 'noop', queueName, children: [flow] }
  return flow
}

export {} // a module: the file awaits at its top
