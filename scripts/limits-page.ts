/** docs/limits.md, from the limits of the code. */
import { LIMITS } from './limits.ts'
import { markdownTable } from './markdown-table.ts'

const HEAD = ['limit of', 'name', 'value', 'beyond it', 'test']

/** The page between its markers: a heading and a table for each group. */
export const limitsTables = (): string =>
  Object.entries(LIMITS)
    .map(([heading, limits]) => {
      const rows = limits.map(({ of, name, value, beyond, test: [file] }) => [
        ...[of, name, value, beyond],
        `[${file.replace(/^.*\/|\.test\.ts$/g, '')}](../tests/${file})`,
      ])
      return `## ${heading}\n\n${markdownTable(HEAD, rows)}`
    })
    .join('\n\n')
