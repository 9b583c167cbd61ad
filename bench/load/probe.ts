/** A reader that asks GET /health repeatedly, as a supervisor does, and records the longest wait. */
import { Connection } from './connection.ts'
import type { Jobs } from './jobs.ts'
import { get } from './requests.ts'

/** Milliseconds between an answer and the next question: a stall may seem shorter by this much. */
const PAUSE_MS = 1

let isStopped = true
let probing: Promise<Jobs['probe-stop']['output']> | undefined

export async function startProbe({ url }: Jobs['probe-start']['input']): Promise<null> {
  const connection = await Connection.open(url)
  const request = get('/health')
  for (let i = 0; i < 100; i++) await connection.expect(200, request) // the first ones are slow on both sides
  isStopped = false
  probing = probe(connection, request)
  return null
}

export async function stopProbe(): Promise<Jobs['probe-stop']['output']> {
  isStopped = true
  return await probing!
}

async function probe(connection: Connection, request: Uint8Array): Promise<Jobs['probe-stop']['output']> {
  using _ = connection
  let longestMs = 0
  let count = 0
  while (!isStopped) {
    const start = performance.now()
    await connection.expect(200, request)
    longestMs = Math.max(longestMs, performance.now() - start)
    count++
    await Bun.sleep(PAUSE_MS)
  }
  return { longestMs, count }
}
