/** Pauses of types of tasks and of the service: a note for each with a button that ends it, and a form that begins one. */
import { useState } from 'preact/hooks'
import type { ListedPause } from '../../../shared/contract/pauses.ts'
import { pauseSentence } from '../model/pause.ts'
import { request } from './api.ts'
import { Dialog, Note } from './parts.tsx'
import { RightButton, useLack } from './session.tsx'

interface PauseNotesProps {
  readonly pauses: readonly ListedPause[]
  readonly now: number
  readonly onChanged: () => void
}

export function PauseNotes({ pauses, now, onChanged }: PauseNotesProps) {
  const lack = useLack('operate')
  const [fault, setFault] = useState<string>()
  const resume = async (type: string | undefined) => {
    setFault(undefined)
    try {
      await request('/resume', { method: 'POST', body: JSON.stringify({ type }) })
      onChanged()
    } catch (error) {
      setFault((error as Error).message)
    }
  }
  return (
    <>
      {fault !== undefined && <Note kind="fault">{fault}</Note>}
      {pauses.map((pause) => (
        <Note kind="quiet" key={pause.type ?? ''}>
          {pauseSentence(pause, pause.type === undefined ? 'The service was' : `Tasks of type ${pause.type} were`, now)}{' '}
          <RightButton lack={lack} class="small" onClick={() => void resume(pause.type)}>
            Resume {pause.type ?? 'the service'}
          </RightButton>
        </Note>
      ))}
    </>
  )
}

interface PauseFormProps {
  /** Types that the service has run. */
  readonly types: readonly string[]
  readonly onPaused: () => void
  readonly onClose: () => void
}

export function PauseForm({ types, onPaused, onClose }: PauseFormProps) {
  const [type, setType] = useState('')
  const [why, setWhy] = useState('')
  const [fault, setFault] = useState<string>()
  const [isSending, setIsSending] = useState(false)
  const send = async () => {
    setFault(undefined)
    setIsSending(true)
    try {
      const given = { ...(type.trim() !== '' && { type: type.trim() }), ...(why.trim() !== '' && { why }) }
      await request('/pause', { method: 'POST', body: JSON.stringify(given) })
      onPaused()
      onClose()
    } catch (error) {
      setFault((error as Error).message)
      setIsSending(false)
    }
  }
  return (
    <Dialog title="Pause" onClose={onClose}>
      <h2>Pause</h2>
      <p>Nothing new starts until it is resumed. What runs goes on, and graphs are accepted.</p>
      <form
        class="answer-form"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <label for="pause-type">Tasks of this type; empty: the whole service</label>
        <input
          id="pause-type"
          list="pause-types"
          value={type}
          onInput={(event) => setType(event.currentTarget.value)}
        />
        <datalist id="pause-types">
          {types.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label for="pause-why">Why, for whoever waits</label>
        <textarea id="pause-why" rows={3} value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        {fault !== undefined && <Note kind="fault">{fault}</Note>}
        <p class="dialog-actions">
          <button type="button" onClick={onClose}>
            Not now
          </button>
          <button type="submit" class="primary" disabled={isSending}>
            Pause it
          </button>
        </p>
      </form>
    </Dialog>
  )
}
