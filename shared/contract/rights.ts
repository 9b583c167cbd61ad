/** What a token allows, and what a route asks for. */

/** The rights that a token may have. */
export const RIGHTS = ['read', 'submit', 'cancel_own', 'cancel', 'answer', 'operate', 'host'] as const
export type Right = (typeof RIGHTS)[number]

/** What each right allows, for help and documentation. */
export const RIGHT_TEXTS: Readonly<Record<Right, string>> = {
  read: 'see graphs, tasks, output, files, events, schedules, runtime services and metrics',
  submit: 'submit graphs and actions, run graphs again, call tools of MCP servers',
  cancel_own: 'cancel tasks of graphs that this token submitted',
  cancel: 'cancel any task',
  answer: 'approve, reject, and signal to tasks that wait',
  host: 'with a tenant: submit tasks that run outside of a strict sandbox',
  operate: 'delete records, change schedules, add, drain and remove runtime services',
}

/**
 * What a route asks of its caller. `none`: nothing, not even a token. `any`: a token, and the route itself looks at its
 * rights. `service`: the token of the service, as other replicas send it; no right is enough.
 */
export type RouteRight = Exclude<Right, 'cancel_own' | 'host'> | 'none' | 'any' | 'service'
