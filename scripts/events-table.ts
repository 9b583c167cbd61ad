/** The kinds of events as a Markdown table, from their declarations. */
import { EVENT_KINDS } from '../shared/contract/events.ts'

export function eventsTable(): string {
  const rows = Object.entries(EVENT_KINDS).map(([name, { when, payload }]) => {
    const fields = Object.keys(payload.properties).map((field) => `\`${field}\``)
    return [`\`${name}\``, when, fields.join(', ')]
  })
  return [['kind', 'when it comes', 'fields'], ['---', '---', '---'], ...rows]
    .map((cells) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`)
    .join('\n')
}
