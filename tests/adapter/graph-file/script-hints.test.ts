/** Which scripts go on after a line that fails: the rule behind a hint of `taskmill check`. */
import { expect, test } from 'bun:test'
import { scriptHints } from '../../../adapter/graph-file/script-hints.ts'

const hintsOf = (params: object, type = 'runtime.script') =>
  scriptHints(new TextEncoder().encode(JSON.stringify({ tasks: [{ id: 'a', type, params }] })))

test.each([
  ['two lines', { script: 'make\ntar -cf a.tar a\n' }, 2],
  ['two lines of a request', { execution: { script: 'make\n\n# pack\ntar -cf a.tar a' } }, 2],
  ['two lines for bash', { script: '#!/usr/bin/env bash\nmake\ntar -cf a.tar a' }, 2],
  ['a late set -e', { script: 'cd x\nset -e\nmake' }, 3],
  ['two lines and an interpreter', { script: 'make\nls', interpreter: ['/bin/bash'] }, 2],
  ['options without -e', { script: 'set -u -o pipefail\nmake\nls' }, 3],
  ['set -E', { script: 'set -E\nmake' }, 2],
  ['quotes that are closed', { script: `echo "it's" 'a "b"' \\"\nls # done` }, 2],
])('a hint at %s', (_, params, lines) => {
  const text = `task a: its script has ${lines} lines and goes on after one that fails: begin it with set -e`
  expect(hintsOf(params)).toEqual([text])
})

test.each([
  ['one line', { script: 'make && ls\n' }],
  ['set -eu', { script: '# build\nset -eu\nmake\nls' }],
  ['set -o errexit', { script: '\nset -o errexit\nmake\nls' }],
  ['set -u -e', { script: 'set -u -e\nmake\nls' }],
  ['errexit after another option', { script: 'set -o pipefail -o errexit\nmake\nls' }],
  ['set -euo', { script: 'set -euo pipefail; cd x\nmake' }],
  ['a here-document', { script: 'cat > f <<EOF\na\nb\nEOF' }],
  ['a text of several lines', { script: "awk '\n{ print $1 }\n' f" }],
  ['an if', { script: 'if test -e f\nthen rm f\nfi' }],
  ['a for', { script: 'for f in *\ndo rm $f\ndone' }],
  ['lines that are one command', { script: 'make &&\n  ls \\\n  -l' }],
  ['an interpreter with -e', { script: 'make\nls', interpreter: ['/bin/sh', '-eu'] }],
  ['a shebang with -e', { script: '#!/bin/sh -e\nmake\nls' }],
  ['another language', { script: '#!/usr/bin/env python3\nimport os\nprint(1)' }],
  ['another interpreter', { script: 'import os\nprint(1)', interpreter: ['/usr/bin/python3'] }],
])('no hint at %s', (_, params) => {
  expect(hintsOf(params)).toEqual([])
})

test('only of tasks that run scripts', () => {
  const hasHint = (type: string) => hintsOf({ script: 'make\nls' }, type).length > 0
  const types = ['runtime.script', 'runtime', 'shell', 'os.shell', 'os', 'mcp', 'noop', 'cli-skills']
  expect(types.filter(hasHint)).toEqual(types.slice(0, 5))
})
