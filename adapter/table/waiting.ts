/** Why a task waits, in words. Pure. */

/** The reason in the answer of the service. Newer services may have other reasons. */
export interface WaitingReason {
  readonly reason?: string | undefined
  readonly tasks?: readonly string[] | undefined
  readonly group?: string | undefined
  readonly graphs?: readonly string[] | undefined
  readonly until?: string | undefined
  readonly detail?: string | undefined
}

/** Tasks that are named as the reason why another one waits. */
const MAX_NAMED_TASKS = 3

/** Empty for a task that does not wait. */
export function waitingWords({
  reason,
  tasks = [],
  group = '',
  graphs = [],
  until = '',
  detail,
}: WaitingReason = {}): string {
  if (reason === 'approval') return detail === undefined ? 'waits for approval' : `waits for approval: ${detail}`
  if (reason === 'signal') return `waits for a signal${detail === undefined ? '' : `: ${detail}`}`
  if (reason === 'answer') return `waits for an answer${detail === undefined ? '' : `: ${detail}`}`
  if (detail !== undefined) return detail
  switch (reason) {
    case 'dependencies':
      return tasks.length === 0 ? '' : `after ${namedTasks(tasks)}`
    case 'group':
      return `waits for a place in group ${group}${graphs.length === 0 ? '' : `, after graph ${graphs.join(', ')}`}`
    case 'backoff':
      return `next attempt at ${until.slice('2030-01-01T'.length, '2030-01-01T00:00:00'.length)} UTC`
    case 'delay':
      return `not before ${until.replace(/\.\d+/, '')}`
    case 'concurrency':
      return 'waits for a slot'
    case 'runtime':
      return 'waits for the runtime service'
    default:
      return ''
  }
}

function namedTasks(tasks: readonly string[]): string {
  const others = tasks.length - MAX_NAMED_TASKS
  return `${tasks.slice(0, MAX_NAMED_TASKS).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
}
