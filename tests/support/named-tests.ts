/** Tables of documents that name tests: `[file](path): text`, several separated by `; `. The text has to be in the file. */
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const DOCS = join(dirname(dirname(import.meta.dir)), 'docs')

/** The rows of the tables between `<!-- begin NAME -->` and its end, without heads. */
export const rowsOf = (document: string, name: string): string[][] =>
  [
    ...readFileSync(join(DOCS, document), 'utf8').matchAll(
      new RegExp(`<!-- begin ${name} -->\\n([\\s\\S]*?)<!-- end ${name} -->`, 'g'),
    ),
  ].flatMap(([, table]) =>
    table!
      .trim()
      .split('\n')
      .slice(2)
      .map((line) => line.slice(2, -2).split(' | ')),
  )

/** Fails unless `cell` names a test, and all that it names are there. */
export function expectNamedTests(cell: string): void {
  for (const named of cell.split('; [').map((part) => part.replace(/^\[/, ''))) {
    const [, path, text] = /^[\w-]+\]\(([^)]+)\): (.+)$/.exec(named) ?? []
    expect(named, 'expected [file](path): text').toBe(path === undefined ? '' : named)
    const wanted = path!.endsWith('.c') ? `"${text}"` : text!
    expect(wanted.length).toBeGreaterThan(5)
    expect(readFileSync(join(DOCS, path!), 'utf8'), `${path} has no "${text}"`).toContain(wanted)
  }
}
