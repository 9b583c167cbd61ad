/** `taskmill list`: the records of tasks, a page at a time. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { integer, list as listOf, text } from '../../shared/settings/flags.ts'
import { briefStatus } from '../../shared/text/brief.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { inFlags } from './in-flags.ts'

/** `run` gives a graph ids of its own, so its tasks are not in the list of the service. */
const NONE = 'no tasks here; those of taskmill run: taskmill graphs, then taskmill list --graph GRAPH_ID'

export const list = defineCommand({
  summary: 'List tasks, the oldest first. Those of taskmill run are below their graph: --graph GRAPH_ID.',
  usage: '[--status failed] [--type shell] [--graph GRAPH_ID] [--limit 100] [--cursor C]',
  settings: {
    status: listOf({ value: 'a,b', help: 'Only tasks in one of these states.' }),
    type: listOf({ value: 'a,b', help: 'Only tasks of one of these types or tools: os, shell, runtime.command.' }),
    graph: text({ value: 'graph id', help: 'Only tasks of this graph.' }),
    limit: integer({ value: 'tasks', default: '100', min: 1, max: 1000, help: 'Tasks on a page.' }),
    cursor: text({ value: 'cursor', help: 'Continue after a page: data.next_cursor of the answer before.' }),
  },
  maxArguments: 0,
  async run({ values: { status, type, graph, limit, cursor }, client }) {
    const query = new URLSearchParams({ limit: String(limit) })
    if (status.length > 0) query.set('status', status.join(','))
    if (type.length > 0) query.set('type', type.join(','))
    if (cursor !== '') query.set('cursor', cursor)
    // Below its graph are also tasks that the list of the service leaves out: with ids of the graph, or replaced.
    const path = graph === '' ? '/tasks' : `/graphs/${encodeURIComponent(graph)}/tasks`
    const { body: tasks, headers } = await inFlags(client.list({ method: 'GET', path: `${path}?${query}` }))
    const next = headers.get('x-next-cursor')
    return {
      data: { tasks, ...(next !== null && { next_cursor: next }) },
      exitCode: EXIT.success,
      brief: () => ({
        tasks: tasks.map((task) => briefStatus(task as TaskRecord)),
        ...(next !== null && { next_cursor: next }),
      }),
      table: async (look) => [
        ...(tasks.length === 0 && graph === ''
          ? [look.paint('dim', NONE)]
          : (await import('../table/tasks.ts')).taskTable(tasks as TaskRecord[], look)),
        ...(next === null ? [] : [look.paint('dim', `more: --cursor ${next}`)]),
      ],
    }
  },
})
