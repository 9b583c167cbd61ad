/** GET /tasks with 10,000 tasks, all of them in one answer. */
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { ControlRowSizes } from './sizes.ts'

export const list: Workload<ServerTarget, ControlRowSizes> = {
  name: 'list',
  measures: ({ listTasks }) => [
    {
      ...{
        key: 'list',
        label: `GET /tasks with ${listTasks.toLocaleString('en')} tasks`,
        unit: '/s',
        better: 'higher',
      },
      goal: { timesFloor: 0.27 },
    },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { listTasks: tasks, lists: requests } = sizes
    await using server = await target.start()
    const { url } = server
    await load.run('graph', { url, shape: 'wide', tasks, repeats: 1, warmUps: 0, prefix: freshPrefix() })
    const listed = (await (await fetch(`${url}/tasks`)).json()) as readonly unknown[]
    if (listed.length !== tasks) throw new Error(`${listed.length} of ${tasks} tasks in the list`)
    const { ratePerSecond } = await load.run('get', { url, path: '/tasks', clients: 1, requests, warmUpRequests: 5 })
    return { list: ratePerSecond }
  },
}
