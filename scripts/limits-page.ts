/** docs/limits.md, from the limits of the code. */
import { LIMITS } from './limits.ts'

/**
 * The page between its markers: a heading and a list for each group. The name of a limit leads to its test. A limit that is a
 * flag stands in docs/settings.md.
 */
export const limitsLists = (): string =>
  Object.entries(LIMITS)
    .map(([heading, limits]) => {
      const items = limits
        .filter(({ name }) => !name.startsWith('`--'))
        .map(({ of, name, value, beyond, test: [file] }) => {
          const outcome = /^\d+$|^`/.test(beyond) ? `${beyond}.` : beyond
          return `- ${of}: ${value}. ${outcome} ([${name}](../tests/${file}))`
        })
      return `## ${heading}\n\n${items.join('\n')}`
    })
    .join('\n\n')
