/**
 * What an argument of a subcommand names: a task, a graph, or a task in a graph (`GRAPH_ID/TASK_ID`), tried in this
 * order. A task of a graph with ids of its own is known only below its graph.
 */
import { CallFailed } from '../shared/http-client.ts'

export interface Address {
  readonly kind: 'task' | 'graph'
  /** The path of its routes: `/tasks/a`, `/graphs/g`, `/graphs/g/tasks/a`. */
  readonly path: string
}

const NOT_FOUND = 404

/** An older service has the path of a graph, but not every method on it. */
const METHOD_NOT_ALLOWED = 405

/** Everything that `argument` may name, in the order in which it is tried. */
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

/** The same for everything that `argument` may name. */
export const atAddress = <T>(argument: string, call: (address: Address) => Promise<T>) =>
  atFirst(argument, addressesOf(argument), call)

/** The same for the tasks that `argument` may name. */
export const atTask = <T>(argument: string, call: (address: Address) => Promise<T>) =>
  atFirst(
    argument,
    addressesOf(argument).filter(({ kind }) => kind === 'task'),
    call,
  )

/** Adds the missing part to the error `unknown`, if the argument has the form `/TASK_ID` or `GRAPH_ID/`. */
function explained(argument: string, unknown: CallFailed): CallFailed {
  const missing = argument.startsWith('/') ? 'graph id before' : argument.endsWith('/') ? 'task id after' : undefined
  if (missing === undefined) return unknown
  return new CallFailed(`${unknown.message} (there is no ${missing} the slash: expected GRAPH_ID/TASK_ID)`, unknown)
}
