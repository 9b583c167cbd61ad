/** The places where callers find a task: under its id in the service, and under its id in a graph. */
import type { TaskAddress } from '../operations/named-tasks.ts'

export interface TaskPlace {
  readonly path: '/tasks/:id' | '/graphs/:id/tasks/:task_id'
  /** Completes the summary of a route. */
  readonly noun: string
  /** Descriptions of the parameters in `path`. */
  readonly params: Readonly<Record<string, string>>
  readonly errors: GraphErrors
  addressIn(params: PathParams): TaskAddress
}

/** The values of the parameters in a `TaskPlace.path`. */
interface PathParams {
  readonly id: string
  readonly task_id?: string
}

/** The errors of every route that finds a graph, or a task of it. */
export const graphErrors = (unknown: string) => ({
  404: unknown,
  409: 'The rows of the graph in the database cannot be read (see GET /graphs?state=unreadable).',
  503: 'Another replica is taking the graph over. Try again.',
})

type GraphErrors = Readonly<ReturnType<typeof graphErrors>>

const taskId = 'Id of the task, percent-encoded.'

/** Every route of a task exists in each of them. */
export const TASK_PLACES: readonly TaskPlace[] = [
  {
    path: '/tasks/:id',
    noun: 'a task',
    params: { id: taskId },
    errors: graphErrors('There is no such task.'),
    addressIn: ({ id }) => ({ id }),
  },
  {
    path: '/graphs/:id/tasks/:task_id',
    noun: 'a task of a graph',
    params: { id: 'Id of the graph.', task_id: taskId },
    errors: graphErrors('There is no such graph, or no such task in it.'),
    addressIn: ({ id: graphId, task_id: id = '' }) => ({ id, graphId }),
  },
]
