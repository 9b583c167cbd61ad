/** docs/limits.md, from the limits of the code. */
import { LIMITS } from './limits.ts'
import { markdownTable } from './markdown-table.ts'

const HEAD = ['limit of', 'name', 'value', 'beyond it']

/**
 * The page between its markers: a heading and a table for each group. The name of a limit leads to its test. A limit that is
 * a flag stands in docs/settings.md.
 */
export const limitsTables = (): string =>
  Object.entries(LIMITS)
    .map(([heading, limits]) => {
      const rows = limits
        .filter(({ name }) => !name.startsWith('`--'))
        .map(({ of, name, value, beyond, test: [file] }) => [...[of, `[${name}](../tests/${file})`, value, beyond]])
      return `## ${heading}\n\n${markdownTable(HEAD, rows)}`
    })
    .join('\n\n')
