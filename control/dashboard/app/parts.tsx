/** Small parts that several places use: a bar of states, an id, a time, a copy button, a dialog, a note. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { agoText, idParts, timeText } from '../model/amounts.ts'
import { barParts, countsSentence } from '../model/counts.ts'
import { LOOK_WORDS } from '../model/looks.ts'
import type { Counts } from '../model/wire.ts'

export function StateBar({ counts, total }: { counts: Counts; total: number }) {
  return (
    <span class="state-bar" role="img" aria-label={countsSentence(counts, LOOK_WORDS) || 'no tasks'}>
      {barParts(counts, total).map(({ status, percent }) => (
        <span key={status} class={`part fill-${status}`} style={{ width: `${percent}%` }} />
      ))}
    </span>
  )
}

/** An id whose middle is cut if there is no room. */
export function Id({ text }: { text: string }) {
  const [head, tail] = idParts(text)
  return (
    <span class="id" title={text}>
      <span class="head">{head}</span>
      {tail !== '' && <span class="tail">{tail}</span>}
    </span>
  )
}

export const Ago = ({ time, now }: { time: string; now: number }) => (
  <time dateTime={time} title={timeText(time)}>
    {agoText(time, now)}
  </time>
)

export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [word, setWord] = useState(label)
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setWord('Copied')
    } catch {
      setWord('Cannot copy')
    }
    setTimeout(() => setWord(label), 1_500)
  }
  return (
    <button type="button" class="small" onClick={copy}>
      {word}
    </button>
  )
}

/** A line of text to copy. */
export const CopyLine = ({ text }: { text: string }) => (
  <div class="copy-line">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a line that scrolls has to be reached by keyboard */}
    <pre tabIndex={0}>{text}</pre>
    <CopyButton text={text} />
  </div>
)

/** A modal dialog. Escape and a click beside it close it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const isClosed = useRef(false)
  useLayoutEffect(() => {
    dialog.current?.showModal()
  }, [])
  // The browser reports the end of a dialog later, and the next key may arrive before that.
  const close = () => {
    if (isClosed.current) return
    isClosed.current = true
    dialog.current?.close()
    onClose()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser closes a dialog by Escape
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={close}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  )
}

/** Asks before something that cannot be undone. */
export function Confirm({
  title,
  text,
  word,
  onYes,
  onNo,
}: {
  title: string
  text: string
  word: string
  onYes: () => void
  onNo: () => void
}) {
  return (
    <Dialog title={title} onClose={onNo}>
      <h2>{title}</h2>
      <p>{text}</p>
      <p class="dialog-actions">
        <button type="button" onClick={onNo}>
          Keep it
        </button>
        <button type="button" class="danger" onClick={onYes}>
          {word}
        </button>
      </p>
    </Dialog>
  )
}

export const Note = ({ kind, children }: { kind: 'fault' | 'quiet'; children: ComponentChildren }) => (
  <p class={`note ${kind}`} role={kind === 'fault' ? 'alert' : undefined}>
    {children}
  </p>
)
