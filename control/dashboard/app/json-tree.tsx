/** A JSON value as a tree that the keyboard can open. Long parts are shown on demand. */
import { useState } from 'preact/hooks'
import { bytesText } from '../model/amounts.ts'

/** Maximum entries of an object or array, and characters of a text, that are shown at once. */
const MAX_ENTRIES = 100
const MAX_CHARACTERS = 2_000

/** Levels that are open at first. */
const OPEN_LEVELS = 2

export function JsonTree({ value, level = 0 }: { value: unknown; level?: number }) {
  if (typeof value === 'string') return <JsonText text={value} />
  if (typeof value !== 'object' || value === null) return <span class={`json-${typeof value}`}>{String(value)}</span>
  const entries = Object.entries(value)
  const isArray = Array.isArray(value)
  if (entries.length === 0) return <span class="json-empty">{isArray ? '[]' : '{}'}</span>
  return <JsonEntries entries={entries} isArray={isArray} level={level} />
}

function JsonEntries({ entries, isArray, level }: { entries: [string, unknown][]; isArray: boolean; level: number }) {
  const [shown, setShown] = useState(MAX_ENTRIES)
  const [isOpen, setIsOpen] = useState(level < OPEN_LEVELS)
  return (
    <details class="json" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{isArray ? `[${entries.length}]` : `{${entries.length}}`}</summary>
      {isOpen && (
        <ul>
          {entries.slice(0, shown).map(([key, value]) => (
            <li key={key}>
              <span class="json-key">{key}</span>
              {': '}
              <JsonTree value={value} level={level + 1} />
            </li>
          ))}
          {entries.length > shown && (
            <li>
              <button type="button" class="small" onClick={() => setShown(shown + MAX_ENTRIES)}>
                {entries.length - shown} more
              </button>
            </li>
          )}
        </ul>
      )}
    </details>
  )
}

function JsonText({ text }: { text: string }) {
  const [isWhole, setIsWhole] = useState(false)
  const isLong = text.length > MAX_CHARACTERS && !isWhole
  const shown = isLong ? text.slice(0, MAX_CHARACTERS) : text
  return (
    <span class={text.includes('\n') ? 'json-string lines' : 'json-string'}>
      {shown}
      {isLong && (
        <button type="button" class="small" onClick={() => setIsWhole(true)}>
          … all {bytesText(text.length)}
        </button>
      )}
    </span>
  )
}
