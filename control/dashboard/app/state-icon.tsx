/** The sign of a state: a shape of its own besides a colour, drawn by the style sheet, and its word for readers. */
import { LOOK_WORDS, type Look } from '../model/looks.ts'

export const StateIcon = ({ look, word = LOOK_WORDS[look] }: { look: Look; word?: string }) => (
  <span class={`state-icon look-${look}`}>
    <span class="for-readers">{word}</span>
  </span>
)
