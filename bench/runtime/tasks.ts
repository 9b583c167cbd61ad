/** Submits, awaits and kills many tasks of a runtime service, without timing them. */
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { type Connection, openConnections, withPatience } from '../load/connection.ts'
import { getTask, killTask, postTask } from '../load/requests.ts'

/** Connections that share the work; what is written at the same time shares the syncs. */
const CONNECTIONS = 32

/** Milliseconds between two looks at a task that is not as wanted. */
const LOOK_MS = 5

/** Milliseconds that the end of a task may take, as the service has it. */
const END_WAIT_MS = 60_000

type NewTask = Omit<SubmitTaskRequest, 'task_id'>

export const submitTasks = (url: string, ids: readonly string[], task: NewTask): Promise<void> =>
  forEach(url, ids, async (connection, task_id) => {
    await connection.expect(200, postTask({ ...task, task_id }))
  })

/** Asks for the end of tasks and waits for it. Those that wait end in the order of `ids`, more or less. */
export const endTasks = (url: string, ids: readonly string[]): Promise<void> =>
  forEach(url, ids, async (connection, id) => {
    await connection.expect(200, killTask(id))
    await connection.expect(200, getTask(id, END_WAIT_MS))
  })

/** Looks at tasks until each is in `status`, and gives what is known of them then. */
export async function tasksIn(
  status: RuntimeStatus,
  url: string,
  ids: readonly string[],
): Promise<TaskStatusResponse[]> {
  const found: TaskStatusResponse[] = []
  await forEach(url, ids, async (connection, id) => {
    for (;;) {
      const task = JSON.parse(await connection.expect(200, getTask(id, 0))) as TaskStatusResponse
      if (task.status === status) return found.push(task)
      await Bun.sleep(LOOK_MS)
    }
  })
  return found
}

async function forEach(
  url: string,
  ids: readonly string[],
  work: (connection: Connection, id: string) => Promise<unknown>,
): Promise<void> {
  const connections = await openConnections(url, Math.min(CONNECTIONS, ids.length))
  let next = 0
  const client = async (connection: Connection) => {
    while (next < ids.length) await work(connection, ids[next++]!)
  }
  try {
    await withPatience(`work on ${ids.length} tasks`, Promise.all(connections.map(client)))
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
}

/** `count` ids that begin with `prefix`. */
export const taskIds = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`)
