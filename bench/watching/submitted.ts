/** Submits graphs that a workload needs before its measurement. */
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { openConnections } from '../load/connection.ts'
import { postTasks, wide } from '../load/requests.ts'

const CLIENTS = 8

/** Submits `count` graphs of one no-op task. Resolves with their ids. */
export async function submittedGraphs(url: string, prefix: string, count: number): Promise<string[]> {
  const connections = await openConnections(url, CLIENTS)
  const ids: string[] = []
  let next = 0
  const submitAll = async (connection: (typeof connections)[number]) => {
    while (next < count) {
      const answer = await connection.expect(202, postTasks(wide(`${prefix}-${next++}`, 1)))
      ids.push((JSON.parse(answer) as SubmitResponse).graph_id)
    }
  }
  try {
    await Promise.all(connections.map(submitAll))
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
  return ids
}
