/** The sign of a state: a shape of its own besides a colour, with its word for those who cannot see it. */
import { LOOK_WORDS, type Look } from '../model/looks.ts'

const SHAPES: Readonly<Record<Look, string>> = {
  pending: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z',
  running: 'M8 2.5a5.5 5.5 0 1 0 5.5 5.5',
  backoff: 'M12.9 5.5A5.5 5.5 0 1 0 13.5 8M13.4 2.4v3.2h-3.2',
  cancelling: 'M8 2.5a5.5 5.5 0 1 0 5.5 5.5M5.5 8h5',
  success: 'M3.2 8.6l3.2 3.2l6.4-7',
  failed: 'M4 4l8 8M12 4l-8 8',
  cancelled: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM4.3 11.7l7.4-7.4',
  skipped: 'M2.5 11c1-5 6-6 9-2.5M12 4.8v4h-4',
}

export function StateIcon({ look, word = LOOK_WORDS[look] }: { look: Look; word?: string }) {
  return (
    <span class={`state-icon look-${look}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d={SHAPES[look]} />
      </svg>
      <span class="for-readers">{word}</span>
    </span>
  )
}
