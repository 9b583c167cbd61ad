/** The output of a task as text. Pure. */
import { visibleLines } from '../../shared/text/visible-text.ts'
import type { Look } from './look.ts'

/** Standard output, then standard error. On a terminal, lines are broken, not cut. */
export const logLines = (
  { stdout, stderr, truncated }: { readonly stdout: string; readonly stderr: string; readonly truncated: boolean },
  { paint }: Look,
): string[] => [
  ...linesOf(stdout),
  ...linesOf(stderr).map((line) => paint('yellow', line)),
  ...(truncated ? [paint('dim', 'there is more than is kept')] : []),
]

const linesOf = (text: string): string[] => (text === '' ? [] : visibleLines(text).replace(/\n$/, '').split('\n'))
