/**
 * `taskmill wait`: returns when all tasks have ended, once only approvals can let them go on, or at the deadline.
 *
 * The service holds each request until its task or graph has ended (`?wait_ms`), so the answer comes without a polling
 * delay. All tasks have to end, so their order does not matter. A service without `wait_ms` answers at once and is then
 * polled every `--interval`.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { isMeantEnd } from '../../shared/contract/run-if.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { CallFailed, NoAnswerInTime, type ServiceClient } from '../../shared/http/client.ts'
import { duration, flag } from '../../shared/settings/flags.ts'
import { atAddress } from '../addresses.ts'
import { type Named, waitInBrief } from '../brief.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { commandLine } from '../shell-words.ts'
import { defineCommand } from './command.ts'
import { idsOf, idsSetting } from './ids.ts'

/** Milliseconds of a held request. Proxies cut longer ones. */
const MAX_HOLD_MS = 20_000

/** Concurrent requests while all tasks are read. */
const PARALLEL_LOOKS = 8

/** Milliseconds after the deadline in which an answer still counts. */
const LATE_ANSWER_MS = 1_000

/** Milliseconds that a request may take beyond its held time. */
const ANSWER_MS = 30_000

const DAY_MS = 86_400_000

export interface WaitData {
  /** Each named task, and each task of a named graph. */
  readonly tasks: readonly { readonly id: string; readonly status: string; readonly graph_id?: string }[]
  readonly all_terminal: boolean
  readonly deadline_rfc3339: string
  /** The approvals that all other tasks wait for. Absent if something else goes on. */
  readonly approvals?: readonly string[]
  /** The commands to answer the first of them, and to wait again. */
  readonly try_next?: readonly string[]
}

export const waitSettings = {
  taskIds: idsSetting,
  timeout: duration({
    default: '2m',
    minMs: 0,
    maxMs: 30 * DAY_MS,
    help: 'Maximum wait. After it, the exit code is 3. Once all tasks have ended the exit code is 0, whatever their status.',
  }),
  interval: duration({
    default: '200ms',
    minMs: 1,
    maxMs: DAY_MS,
    help: 'Polling interval for services that do not support wait_ms.',
  }),
}

export const wait = defineCommand({
  summary: 'Wait until tasks, or all tasks of graphs, have ended: success, failed, cancelled or skipped.',
  usage: 'ID... [--fail] [--timeout 2m]',
  settings: {
    fail: flag({
      help: 'Exit code 1 if a task did not succeed. Failures with continue_on_error, and tasks that did not have to run, do not count.',
    }),
    ...waitSettings,
  },
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, client, env }): Promise<Answer> {
    const { data, hasFailed, named } = await waitForEnd(client, idsOf(positionals, values), values)
    const { tasks: _, deadline_rfc3339: __, ...rest } = data
    return {
      data,
      exitCode: data.all_terminal && values.fail && hasFailed ? EXIT.error : exitCodeOf(data),
      brief: () => ({ ...rest, ...waitInBrief(named, { client, env }) }),
    }
  },
})

export const exitCodeOf = ({ all_terminal }: WaitData) => (all_terminal ? EXIT.success : EXIT.waitTimedOut)

/** The last known state of an argument. */
interface Seen {
  readonly isOpen: boolean
  /** Whether it ended without success. */
  readonly hasFailed: boolean
  /** The tasks of a graph. Only the first ones of a very large graph. */
  readonly tasks: WaitData['tasks']
  /** The approvals that alone let it go on, as `GRAPH_ID/TASK_ID`. */
  readonly approvals: readonly string[]
  /** Absent until the service has answered. */
  readonly named?: Named
}

export async function waitForEnd(
  client: ServiceClient,
  ids: readonly string[],
  { timeout, interval }: { readonly timeout: number; readonly interval: number },
): Promise<{ readonly data: WaitData; readonly hasFailed: boolean; readonly named: readonly Named[] }> {
  const deadline = Date.now() + timeout
  const seen = new Map<string, Seen>()
  const isOpen = (id: string) => seen.get(id)?.isOpen ?? true
  const goesOn = (id: string) => isOpen(id) && (seen.get(id)?.approvals.length ?? 0) === 0
  let knowsApprovals = true
  const look = async (id: string, holdMs: number): Promise<void> => {
    const wanted = new URLSearchParams({
      ...(holdMs > 0 && { wait_ms: String(holdMs) }),
      ...(knowsApprovals && { wait_for: 'approval' }),
    })
    const query = wanted.size === 0 ? '' : `?${wanted}`
    const remainingMs = Math.max(0, deadline - Date.now())
    const timeoutMs = Math.min(holdMs + ANSWER_MS, remainingMs + LATE_ANSWER_MS)
    try {
      const { address, answer } = await atAddress(id, ({ path }) =>
        client.answer({ method: 'GET', path: path + query, timeoutMs }),
      )
      const { body, headers } = answer
      const named: Named =
        address.kind === 'graph'
          ? { kind: 'graph', graph: body as GraphDetails }
          : { kind: 'task', id, task: body as TaskRecord }
      const found = named.kind === 'graph' ? seenOfGraph(named.graph) : seenOfTask(id, body)
      seen.set(id, { ...found, named, approvals: approvalsIn(headers, body as { graph_id?: string }) })
    } catch (error) {
      // An older service does not know the parameter.
      if (knowsApprovals && error instanceof CallFailed && error.statusCode === 400) {
        knowsApprovals = false
        return look(id, holdMs)
      }
      // No answer in time counts as tasks that did not end in time.
      if (!(error instanceof NoAnswerInTime && Date.now() >= deadline)) throw error
      if (!seen.has(id))
        seen.set(id, { isOpen: true, hasFailed: false, tasks: [{ id, status: 'unknown' }], approvals: [] })
    }
  }
  const lookAtOpen = () => inParallel([...new Set(ids)].filter(isOpen), (id) => look(id, 0))

  await lookAtOpen()
  while (ids.some(goesOn) && Date.now() < deadline) {
    for (const id of ids) {
      while (goesOn(id) && Date.now() < deadline) {
        const askedAt = Date.now()
        await look(id, Math.min(deadline - askedAt, MAX_HOLD_MS))
        const pauseMs = Math.min(interval - (Date.now() - askedAt), deadline - Date.now())
        if (goesOn(id) && pauseMs > 0) await Bun.sleep(pauseMs)
      }
    }
    if (ids.some(isOpen)) await lookAtOpen() // an approval may have been answered while others were awaited
  }
  const found = ids.flatMap((id) => seen.get(id) ?? [])
  const approvals = ids.some(goesOn) ? [] : [...new Set(found.flatMap((one) => one.approvals))]
  const data = {
    tasks: found.flatMap(({ tasks }) => tasks),
    all_terminal: !ids.some(isOpen),
    deadline_rfc3339: new Date(deadline).toISOString(),
    ...(approvals.length > 0 && {
      approvals,
      try_next: [commandLine('taskmill', 'approve', approvals[0]!), commandLine('taskmill', 'wait', ...ids)],
    }),
  }
  const named = found.flatMap(({ named: one }) => one ?? [])
  return { data, hasFailed: found.some(({ hasFailed }) => hasFailed), named }
}

/** The approvals that the service names. It gives ids in the graph of what it shows. */
function approvalsIn(headers: Headers, { graph_id = '' }: { graph_id?: string }): string[] {
  const named = headers.get('x-awaited-approvals') ?? ''
  return named === '' ? [] : named.split(',').map((id) => `${graph_id}/${decodeURIComponent(id)}`)
}

function seenOfTask(id: string, answer: object): Omit<Seen, 'approvals'> {
  const { status: given, continue_on_error, error } = answer as Partial<TaskRecord>
  const status = String(given)
  const isOpen = !isTerminal(status)
  const isMeant = status === 'success' || isMeantEnd({ status, continue_on_error, error })
  return { isOpen, hasFailed: !isOpen && !isMeant, tasks: [{ id, status }] }
}

const seenOfGraph = ({ graph_id, state, tasks }: GraphDetails): Omit<Seen, 'approvals'> => ({
  isOpen: state === 'running',
  hasFailed: state === 'failed' || state === 'cancelled',
  tasks: tasks.map(({ id, status }) => ({ id, status, graph_id })),
})

async function inParallel(ids: readonly string[], each: (id: string) => Promise<void>): Promise<void> {
  const rest = ids.values()
  const worker = async () => {
    for (const id of rest) await each(id)
  }
  await Promise.all(Array.from({ length: Math.min(PARALLEL_LOOKS, ids.length) }, worker))
}
