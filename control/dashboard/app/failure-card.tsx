/** The task that failed first: its last output, the number of skipped tasks, and commands to try next. */
import { StyledText } from '../log/styled-text.tsx'
import { type GraphPlace, hashOf } from '../model/place.ts'
import type { RootCause } from '../model/wire.ts'
import { serviceUrl } from './api.ts'
import { CopyLine, Id } from './parts.tsx'
import { StateIcon } from './state-icon.tsx'

/** The service that the client calls unless it is told otherwise. */
const CLIENT_DEFAULT = 'http://127.0.0.1:8080'

/** Maximum lines of the last output. */
const MAX_TAIL_LINES = 20

export function FailureCard({ cause, place }: { cause: RootCause; place: GraphPlace }) {
  const { task_id, error, tail, remedy, skipped, try_next } = cause
  const url = serviceUrl()
  const address = url === CLIENT_DEFAULT ? '' : ` --url ${url}`
  return (
    <section class="failure-card" aria-label="What failed first">
      <h2>
        <StateIcon look="failed" word="" />
        <a href={hashOf({ ...place, taskId: task_id, tab: 'overview' })}>
          <Id text={task_id} />
        </a>{' '}
        failed first
        {skipped > 0 && (
          <span class="quiet">
            {skipped} {skipped === 1 ? 'task was' : 'tasks were'} skipped because of it
          </span>
        )}
      </h2>
      <pre class="error-text">{error}</pre>
      {tail !== undefined && tail.trim() !== '' && tail.trim() !== error.trim() && (
        <StyledText text={tail} maxLines={MAX_TAIL_LINES} />
      )}
      {remedy !== undefined && <p>To do: {remedy}</p>}
      {try_next.length > 0 && (
        <details>
          <summary>What to try next</summary>
          {try_next.map((command) => (
            <CopyLine key={command} text={`${command}${address}`} />
          ))}
        </details>
      )}
    </section>
  )
}
