/** The sign of a state: a colour and a shape, drawn by the style sheet, and a word for screen readers. */
import { LOOK_WORDS, type Look } from '../model/looks.ts'

export const StateIcon = ({ look, word = LOOK_WORDS[look] }: { look: Look; word?: string }) => (
  <span class={`state-icon look-${look}`}>
    <span class="for-readers">{word}</span>
  </span>
)
