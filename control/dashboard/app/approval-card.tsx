/** What a task asks that waits for an approval, and the two answers. Each opens a form for a name and a reason. */
import { useState } from 'preact/hooks'
import type { TaskRecord } from '../../../shared/contract/control.ts'
import { remainingText } from '../model/amounts.ts'
import type { Waiting } from '../model/wire.ts'
import { request } from './api.ts'
import { Dialog, Note } from './parts.tsx'
import { RightButton, useLack } from './session.tsx'

type Verb = 'approve' | 'reject'

const WORDS = {
  approve: { title: 'Approve', word: 'Approve the task', kind: 'primary', effect: 'Tasks that wait for it run.' },
  reject: {
    title: 'Reject',
    word: 'Reject the task',
    kind: 'danger',
    effect: 'It fails; tasks that wait for it are skipped.',
  },
} as const

/** The name that was given last. This tab keeps it until it is closed. */
const NAME_KEY = 'taskmill-name'

export interface ApprovalCardProps {
  /** Absent where several stand in a row: what is around each has a name. */
  readonly label?: string
  readonly id: string
  /** The path of the task's routes. */
  readonly path: string
  readonly record: TaskRecord | undefined
  readonly waiting: Pick<Waiting, 'until' | 'detail'>
  readonly now: number
  readonly onAnswered?: () => void
}

export function ApprovalCard({ id, label, path, record, waiting, now, onAnswered }: ApprovalCardProps) {
  const [asked, setAsked] = useState<Verb>()
  const lack = useLack('answer')
  const { message } = (record?.resolved_input ?? record?.input ?? record?.params ?? {}) as { message?: unknown }
  const leftMs = waiting.until === undefined ? undefined : Math.max(0, Date.parse(waiting.until) - now)
  return (
    <section class="approval" aria-label={label}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls has to be reached by keyboard */}
      <pre class="approval-message" tabIndex={0}>
        {typeof message === 'string' ? message : (waiting.detail ?? 'May it go on?')}
      </pre>
      <p class="approval-actions">
        <RightButton lack={lack} class="primary" onClick={() => setAsked('approve')}>
          Approve …
        </RightButton>
        <RightButton lack={lack} class="danger" onClick={() => setAsked('reject')}>
          Reject …
        </RightButton>
        {leftMs !== undefined && <span class="quiet">{remainingText(leftMs)} left to answer</span>}
      </p>
      {asked !== undefined && (
        <AnswerForm {...{ id, path, onAnswered }} verb={asked} onClose={() => setAsked(undefined)} />
      )}
    </section>
  )
}

interface AnswerFormProps extends Pick<ApprovalCardProps, 'id' | 'path'> {
  readonly verb: Verb
  readonly onAnswered: (() => void) | undefined
  readonly onClose: () => void
}

function AnswerForm({ id, path, verb, onAnswered, onClose }: AnswerFormProps) {
  const [who, setWho] = useState(() => sessionStorage.getItem(NAME_KEY) ?? '')
  const [why, setWhy] = useState('')
  const [fault, setFault] = useState<string>()
  const [isSending, setIsSending] = useState(false)
  const { title, word, kind, effect } = WORDS[verb]
  const send = async () => {
    setFault(undefined)
    setIsSending(true)
    try {
      sessionStorage.setItem(NAME_KEY, who)
      const body = JSON.stringify({ who, ...(why.trim() !== '' && { why }) })
      await request(`${path}/${verb}`, { method: 'POST', body })
      onAnswered?.()
      onClose()
    } catch (error) {
      setFault((error as Error).message)
      setIsSending(false)
    }
  }
  return (
    <Dialog title={`${title} ${id}`} onClose={onClose}>
      <h2>{`${title} ${id}`}</h2>
      <p>{effect}</p>
      <form
        class="answer-form"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <label for="answer-who">Your name</label>
        <input id="answer-who" autocomplete="name" value={who} onInput={(event) => setWho(event.currentTarget.value)} />
        <label for="answer-why">Reason, if you like</label>
        <textarea id="answer-why" rows={3} value={why} onInput={(event) => setWhy(event.currentTarget.value)} />
        {fault !== undefined && <Note kind="fault">{fault}</Note>}
        <p class="dialog-actions">
          <button type="button" onClick={onClose}>
            Not now
          </button>
          <button type="submit" class={kind} disabled={isSending || who.trim() === ''}>
            {word}
          </button>
        </p>
      </form>
    </Dialog>
  )
}
