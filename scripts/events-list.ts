/** The kinds of events as a Markdown list, from their declarations. */
import { EVENT_KINDS } from '../shared/contract/events.ts'

export const eventsList = (): string =>
  Object.entries(EVENT_KINDS)
    .map(([name, { when, payload }]) => {
      const fields = Object.keys(payload.properties).map((field) => `\`${field}\``)
      return `- \`${name}\`. ${when}${fields.length === 0 ? '' : ` Fields: ${fields.join(', ')}.`}`
    })
    .join('\n')
