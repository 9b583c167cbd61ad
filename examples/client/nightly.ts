/** Submits a graph once a day, tells what happens to it, and shows the output of what failed. */
import { type TaskGraph, Taskmill, TaskmillError } from 'taskmill/client'

const graph: TaskGraph = {
  name: 'nightly',
  scope: 'graph',
  tasks: [
    { id: 'list', type: 'shell', params: { command: 'ls', args: ['-l'] } },
    { id: 'read', type: 'shell', params: { command: 'cat', args: ['report.txt'] }, depends_on: ['list'], retry: 1 },
  ],
}

const mill = new Taskmill() // SERVICE_URL and SERVICE_TOKEN, else http://127.0.0.1:8080
const day = new Date().toISOString().slice(0, 10)
try {
  const submitted = await mill.submit(graph, { idempotencyKey: `nightly ${day}` })
  for await (const event of mill.graphEvents(submitted)) {
    if (event.event === 'task_changed') console.log(`${event.task_id}: ${event.status}`)
  }
  const { state } = await mill.getGraph(submitted)
  for await (const task of mill.graphTasks(submitted, { status: 'failed' })) {
    console.log(`${task.id}: ${task.error}`)
    console.log((await mill.log(task, { stream: 'stderr', tail: 10 })).text)
  }
  console.log(state)
} catch (error) {
  if (!(error instanceof TaskmillError)) throw error
  console.error(`${error.code}: ${error.message}`)
  process.exitCode = 1
}
