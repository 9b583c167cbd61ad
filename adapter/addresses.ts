/**
 * Resolves an argument of a subcommand to a task, a graph, or a task in a graph (`GRAPH_ID/TASK_ID`), tried in this
 * order. A task of a scoped graph is known only within its graph.
 */
import type { GraphDetails } from '../shared/contract/graphs.ts'
import { CallFailed, type ServiceClient } from '../shared/http/client.ts'
import { PartialFailure } from './envelope.ts'

export interface Address {
  readonly kind: 'task' | 'graph'
  /** The start of its routes: `/tasks/a`, `/graphs/g`, `/graphs/g/tasks/a`. */
  readonly path: string
}

const NOT_FOUND = 404

/** An older service has the path of a graph, but not every method on it. */
const METHOD_NOT_ALLOWED = 405

/** The possible addresses of `argument`, in the order in which they are tried. */
export function addressesOf(argument: string): readonly Address[] {
  const encoded = encodeURIComponent(argument)
  const slash = argument.indexOf('/')
  const [graph, task] = [argument.slice(0, slash), argument.slice(slash + 1)].map(encodeURIComponent)
  return [
    { kind: 'task', path: `/tasks/${encoded}` },
    { kind: 'graph', path: `/graphs/${encoded}` },
    ...(slash > 0 && task !== '' ? [{ kind: 'task', path: `/graphs/${graph}/tasks/${task}` } as const] : []),
  ]
}

/** Makes `call` at the first of `addresses` that the service knows. If it knows none, throws the first refusal. */
async function atFirst<T>(
  argument: string,
  addresses: readonly Address[],
  call: (address: Address) => Promise<T>,
): Promise<{ readonly address: Address; readonly answer: T }> {
  let unknown: CallFailed | undefined
  for (const address of addresses) {
    try {
      return { address, answer: await call(address) }
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      const isUnknown =
        error.statusCode === NOT_FOUND || (unknown !== undefined && error.statusCode === METHOD_NOT_ALLOWED)
      if (!isUnknown) throw error
      unknown ??= error
    }
  }
  throw explained(argument, unknown!)
}

/** Calls `call` at the possible addresses of `argument`. */
export const atAddress = <T>(argument: string, call: (address: Address) => Promise<T>) =>
  atFirst(argument, addressesOf(argument), call)

/** Calls `call` at the possible addresses of tasks. If `argument` names a graph, the failure lists its tasks. */
export const atTask = <T>(argument: string, client: ServiceClient, call: (address: Address) => Promise<T>) =>
  atFirst(
    argument,
    addressesOf(argument).filter(({ kind }) => kind === 'task'),
    call,
  ).catch(async (error: unknown) => {
    throw await withTasksOf(argument, client, error)
  })

async function withTasksOf(id: string, client: ServiceClient, error: unknown): Promise<unknown> {
  if (!(error instanceof CallFailed && error.statusCode === NOT_FOUND)) return error
  const path = `/graphs/${encodeURIComponent(id)}`
  const graph = (await client.call({ method: 'GET', path }).catch(() => undefined)) as GraphDetails | undefined
  if (!Array.isArray(graph?.tasks)) return error
  const tasks = graph.tasks.map((task) => ({ id: task.id, status: task.status }))
  const example = tasks[0] === undefined ? '' : `, such as ${id}/${tasks[0].id}`
  return new PartialFailure(`${id} is a graph: name one of its tasks${example}`, error, { graph_id: id, tasks })
}

/** Adds the missing part to the error `unknown`, if the argument has the form `/TASK_ID` or `GRAPH_ID/`. */
function explained(argument: string, unknown: CallFailed): CallFailed {
  const missing = argument.startsWith('/') ? 'graph id before' : argument.endsWith('/') ? 'task id after' : undefined
  if (missing === undefined) return unknown
  return new CallFailed(`${unknown.message} (there is no ${missing} the slash: expected GRAPH_ID/TASK_ID)`, unknown)
}
