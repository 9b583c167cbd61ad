/** A form that submits a graph, with examples. Ids belong to the graph, so the same graph can be submitted again. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { RequestKey } from '../model/request-key.ts'
import { postOnce } from './api.ts'
import { EXAMPLES, FENCED_EXAMPLES } from './examples.ts'
import { Note } from './parts.tsx'
import { RightButton, useLack } from './session.tsx'

interface Answer {
  readonly graph_id: string
  readonly warnings?: readonly { readonly task_id: string; readonly message: string }[]
}

interface SubmitFormProps {
  /** Whether tasks may run in a strict sandbox only. */
  readonly isFenced: boolean
  readonly onSubmitted: (graphId: string) => void
}

export function SubmitForm({ isFenced, onSubmitted }: SubmitFormProps) {
  const examples = isFenced ? FENCED_EXAMPLES : EXAMPLES
  const [text, setText] = useState(() => JSON.stringify(examples[0]!.body, null, 2))
  const [fault, setFault] = useState<string>()
  const [isSending, setIsSending] = useState(false)
  const [warned, setWarned] = useState<Answer>()
  const [key] = useState(() => new RequestKey())
  const lack = useLack('submit')
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.focus(), [])
  const submit = async () => {
    setFault(undefined)
    setIsSending(true)
    try {
      const body = JSON.stringify({ scope: 'graph', ...(JSON.parse(text) as object) })
      const answer = await postOnce<Answer>(key, '/tasks', body)
      if (answer.warnings === undefined) onSubmitted(answer.graph_id)
      else setWarned(answer)
    } catch (error) {
      setFault(error instanceof SyntaxError ? `This is not JSON: ${error.message}` : (error as Error).message)
    } finally {
      setIsSending(false)
    }
  }
  return (
    <form
      class="submit-form"
      onSubmit={(event) => {
        event.preventDefault()
        void submit()
      }}
    >
      <h1>Submit a graph</h1>
      <fieldset class="examples">
        <legend>Examples</legend>
        {examples.map(({ title, body }) => (
          <button type="button" class="small" key={title} onClick={() => setText(JSON.stringify(body, null, 2))}>
            {title}
          </button>
        ))}
      </fieldset>
      <label for="graph-text">Graph, as JSON</label>
      <textarea
        id="graph-text"
        ref={area}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && lack === undefined) void submit()
        }}
      />
      {lack !== undefined && <Note kind="quiet">{lack}</Note>}
      {fault !== undefined && <Note kind="fault">{fault}</Note>}
      {warned !== undefined && (
        <div class="note fault" role="alert">
          <p>The graph was accepted, but some tasks are certain to fail:</p>
          <ul>
            {warned.warnings!.map(({ task_id, message }) => (
              <li key={task_id}>
                {task_id}: {message}
              </li>
            ))}
          </ul>
          <button type="button" class="small" onClick={() => onSubmitted(warned.graph_id)}>
            Watch it
          </button>
        </div>
      )}
      <p>
        <RightButton lack={lack} type="submit" class="primary" disabled={isSending}>
          Submit
        </RightButton>{' '}
        <span class="quiet">or Ctrl+Enter</span>
      </p>
    </form>
  )
}
