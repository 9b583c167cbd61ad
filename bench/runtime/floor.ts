/**
 * The floor of the runtime service: the least that a server of its API on Bun has to do, as an upper bound.
 *
 * It uses Bun.serve, JSON.parse, Bun.spawn of the command itself, a count of free slots, and a journal. A task is on disk
 * before it is answered and started, and its end before it is reported. The floor does not check bodies, keeps only ids
 * and exit codes, makes no files for a task, drops its output, limits nothing, and reads nothing back at a start.
 *
 * Usage: floor --port N --slots N --journal FILE
 */
import { parseArgs } from 'node:util'
import type { SubmitTaskResponse } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import type { RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { Journal } from '../journal.ts'

interface FloorTask {
  readonly task_id: string
  readonly command: readonly string[]
  readonly ended: PromiseWithResolvers<void>
  status: RuntimeStatus
  pid?: number
  exit_code?: number
}

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    slots: { type: 'string' },
    journal: { type: 'string' },
  },
})
const journal = new Journal(values.journal!)
const tasks = new Map<string, FloorTask>()
const waiting: FloorTask[] = []
const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' }
let freeSlots = Number(values.slots)

function startWhatFits(): void {
  while (freeSlots > 0 && waiting.length > 0) start(waiting.shift()!)
}

function start(task: FloorTask): void {
  freeSlots--
  task.status = 'running'
  const child = Bun.spawn([...task.command], { env, stdio: ['ignore', 'ignore', 'ignore'] })
  task.pid = child.pid
  child.exited.then((exitCode) => end(task, exitCode))
}

async function end(task: FloorTask, exitCode: number): Promise<void> {
  freeSlots++
  startWhatFits()
  await journal.append(`{"task_id":"${task.task_id}","exit_code":${exitCode}}\n`)
  task.status = exitCode === 0 ? 'success' : 'failed'
  task.exit_code = exitCode
  task.ended.resolve()
}

const statusOf = ({ task_id, status, pid, exit_code }: FloorTask) =>
  Response.json({ task_id, handle_id: task_id, status, pid, exit_code })

Bun.serve({
  hostname: '127.0.0.1',
  port: Number(values.port),
  routes: {
    '/api/v1/tasks': {
      POST: async (request) => {
        const text = await request.text()
        const { task_id, execution } = JSON.parse(text) as Required<SubmitTaskRequest>
        const { program, args } = execution as { program: string; args?: readonly string[] }
        const command = [program, ...(args ?? [])]
        const task: FloorTask = { task_id: task_id!, command, ended: Promise.withResolvers(), status: 'accepted' }
        await journal.append(`${text}\n`)
        tasks.set(task.task_id, task)
        waiting.push(task)
        startWhatFits()
        const answer: SubmitTaskResponse = { task_id: task.task_id, handle_id: task.task_id, status: 'accepted' }
        return Response.json(answer)
      },
    },
    '/api/v1/tasks/:id': {
      GET: async (request) => {
        const task = tasks.get(request.params.id)!
        const waitMs = Number(new URL(request.url).searchParams.get('wait_ms'))
        if (waitMs > 0 && task.exit_code === undefined) {
          const late = Promise.withResolvers<void>()
          const timer = setTimeout(late.resolve, waitMs)
          await Promise.race([task.ended.promise, late.promise])
          clearTimeout(timer)
        }
        return statusOf(task)
      },
    },
    '/api/v1/tasks/:id/kill': {
      POST: (request) => {
        const task = tasks.get(request.params.id)!
        if (task.pid !== undefined && task.status === 'running') process.kill(task.pid, 'SIGTERM')
        return statusOf(task)
      },
    },
    '/healthz': () => Response.json({ status: 'ok', version: 'floor' }),
  },
})
