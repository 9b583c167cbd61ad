/** What builds the guide does its work, and finds the faults that it is there to find. Method: run with the awk of this host. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const GUIDE = join(import.meta.dir, '../../examples/demo/guide')

const NOTES = `Notes <of> A & B
===============

A line that is a
paragraph.

Sightings
---------

03-21 moorhen 3 bank: walks & swims
10-04 grey-wagtail 1 wheel: bathes in <the> spray

The end.
`

const PAGE = `<!doctype html>
<meta charset="utf-8">
<title>Notes &lt;of&gt; A &amp; B</title>
<h1>Notes &lt;of&gt; A &amp; B</h1>
<p>
A line that is a
paragraph.
</p>
<h2>Sightings</h2>
<table>
<tr><td>03-21</td><td>moorhen</td><td>3</td><td>bank</td><td>walks &amp; swims</td></tr>
<tr><td>10-04</td><td>grey-wagtail</td><td>1</td><td>wheel</td><td>bathes in &lt;the&gt; spray</td></tr>
</table>
<p>
The end.
</p>
`

/** Runs one of them over files with these texts. */
function awk(program: string, files: Readonly<Record<string, string>>, ...flags: string[]) {
  using dir = tempDir()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir.path, name), text)
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    ['awk', ...flags, '-f', join(GUIDE, `${program}.awk`), ...Object.keys(files)],
    { cwd: dir.path, env: testEnvironment() },
  )
  expect(stderr.toString()).toBe('')
  return { exitCode, lines: stdout.toString().trimEnd().split('\n') }
}

describe('check', () => {
  test('counts sightings and books', () => {
    const checked = awk('check', { 'a.txt': NOTES, 'b.txt': NOTES })
    expect(checked).toEqual({ exitCode: 0, lines: ['4 sightings in 2 books, 0 faults'] })
  })

  test.each([
    '03-21 Moorhen 3 bank: walks',
    '03-21 moorhen 0 bank: walks',
    '03-21 moorhen bank: walks',
    '03-21 moorhen 3 bank walks',
    '93-21 moorhen 3 bank: walks',
    '03-21 moorhen 3 bank: ',
  ])('finds fault with "%s"', (line) => {
    const { exitCode, lines } = awk('check', { 'a.txt': `${NOTES}${line}\n` })
    expect(lines).toEqual([`a.txt:14: not a sighting: ${line}`, '3 sightings in 1 books, 1 faults'])
    expect(exitCode).toBe(1)
  })
})

test('press makes a page of notes, in which nothing of them is markup', () => {
  expect(awk('press', { 'a.txt': NOTES })).toEqual({ exitCode: 0, lines: PAGE.trimEnd().split('\n') })
})

describe('prove', () => {
  test('finds nothing wrong with pages that were pressed', () => {
    const { exitCode, lines } = awk('prove', { 'a.txt': NOTES, 'a.html': PAGE, 'b.txt': NOTES, 'b.html': PAGE })
    expect(lines).toContain('ok 1 - a.html: 2 of 2 sightings')
    expect(lines.at(-1)).toBe('6 proofs, 0 failed')
    expect(exitCode).toBe(0)
  })

  test.each([
    [/<tr>.*moorhen.*\n/, '', 'not ok 4 - b.html: 1 of 2 sightings'],
    ['</p>\n<h2>', '<h2>', 'not ok 5 - b.html: 17 of 18 tags closed'],
    [/<title>.*\n/, '', 'not ok 6 - b.html: 0 title'],
  ])('finds a page without %p', (what, instead, fault) => {
    const files = { 'a.txt': NOTES, 'a.html': PAGE, 'b.txt': NOTES, 'b.html': PAGE.replace(what, instead) }
    const { exitCode, lines } = awk('prove', files)
    expect(lines.filter((line) => line.startsWith('not'))).toEqual([fault])
    expect(exitCode).toBe(1)
  })

  test('does not hold when there was nothing to prove', () => {
    expect(awk('prove', { 'a.txt': NOTES })).toEqual({ exitCode: 1, lines: ['0 proofs, 0 failed'] })
  })
})

test('bind links to each page by its title', () => {
  const { lines } = awk('bind', { 'a.html': PAGE, 'b.html': PAGE })
  expect(lines.filter((line) => line.startsWith('<li>'))).toEqual([
    '<li><a href="a.html">Notes &lt;of&gt; A &amp; B</a></li>',
    '<li><a href="b.html">Notes &lt;of&gt; A &amp; B</a></li>',
  ])
})

test('colophon adds up the pages', () => {
  const { lines } = awk('colophon', { 'a.html': PAGE, 'b.html': PAGE }, '-v', 'host=a mill')
  expect(lines.at(-1)).toBe(`  2 pages, 4 sightings, ${2 * PAGE.length} bytes. Built on a mill.`)
})
