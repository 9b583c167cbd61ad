/** /api/v1/tasks/:id/network: the connections of a task whose network has rules. */
import type { AnyElysia } from 'elysia'
import { TaskNetwork } from '../../shared/contract/task-network.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import type { TaskStore } from '../store/task-store.ts'
import type { Networks } from '../tasks/networks.ts'
import { knownTask, params, section, unknownTask } from './known-task.ts'

export interface NetworkRoutes {
  readonly store: TaskStore
  readonly networks: Pick<Networks, 'look'>
}

export const addNetworkRoute = (app: AnyElysia, { store, networks }: NetworkRoutes): AnyElysia =>
  app.get(
    '/api/v1/tasks/:id/network',
    ({ params }): TaskNetwork => {
      const row = knownTask(store, params.id)
      return networks.look(row, store.events(row.task_id))
    },
    described({
      section,
      right: 'read',
      summary: 'Read the connections of a task',
      description: 'The connections of a task whose network has rules, also while it runs. Other tasks have none.',
      params,
      answers: { 200: json(TaskNetwork, 'The totals and the connections.') },
      errors: unknownTask,
    }),
  )
