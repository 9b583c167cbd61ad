/** Asks how a graph runs again: from where, and with which parameters. */
import { useState } from 'preact/hooks'
import type { RerunRequest } from '../../../shared/contract/rerun.ts'
import { Dialog, Note } from './parts.tsx'

export interface RerunFormProps {
  /** Tasks without dependencies, with which everything runs again. Undefined: the page does not have them all. */
  readonly roots: readonly string[] | undefined
  /** All tasks have succeeded, so that only all of them can run again. */
  readonly isSuccess: boolean
  readonly onRun: (request: RerunRequest) => void
  readonly onClose: () => void
}

export function RerunForm({ roots, isSuccess, onRun, onClose }: RerunFormProps) {
  const [isWhole, setIsWhole] = useState(isSuccess)
  const [params, setParams] = useState('')
  const [fault, setFault] = useState<string>()
  const send = () => {
    try {
      const given = params.trim() === '' ? {} : { params: JSON.parse(params) as Record<string, unknown> }
      onRun({ from: isWhole && roots !== undefined ? [...roots] : 'failed', ...given })
      onClose()
    } catch (error) {
      setFault(`This is not JSON: ${(error as Error).message}`)
    }
  }
  return (
    <Dialog title="Run the graph again" onClose={onClose}>
      <h2>Run the graph again</h2>
      <form
        class="answer-form"
        onSubmit={(event) => {
          event.preventDefault()
          send()
        }}
      >
        <fieldset>
          <legend>Tasks</legend>
          <label>
            <input
              type="radio"
              name="from"
              checked={!isWhole}
              disabled={isSuccess}
              onChange={() => setIsWhole(false)}
            />
            What did not succeed
          </label>
          <label>
            <input
              type="radio"
              name="from"
              checked={isWhole}
              disabled={roots === undefined}
              onChange={() => setIsWhole(true)}
            />
            Everything
          </label>
        </fieldset>
        <label for="rerun-params">Parameters with other values, as JSON</label>
        <textarea
          id="rerun-params"
          rows={4}
          spellcheck={false}
          placeholder='{"version": "2.0"}'
          value={params}
          onInput={(event) => setParams(event.currentTarget.value)}
        />
        {fault !== undefined && <Note kind="fault">{fault}</Note>}
        <p class="dialog-actions">
          <button type="button" onClick={onClose}>
            Not now
          </button>
          <button type="submit" class="primary">
            Run
          </button>
        </p>
      </form>
    </Dialog>
  )
}
