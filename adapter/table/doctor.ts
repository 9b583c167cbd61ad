/** `-o table` of `taskmill doctor`. Pure. */
import { visibleLine } from '../../shared/text/visible-text.ts'
import type { Look } from './look.ts'

interface Shown {
  readonly check: string
  readonly ok: boolean
  readonly detail: string
  readonly remedy?: string
}

export const doctorLines = (findings: readonly Shown[], { paint }: Look): string[] =>
  findings.flatMap(({ check, ok, detail, remedy }) => [
    `${ok ? paint('green', 'ok     ') : paint('red', 'WRONG  ')} ${visibleLine(check)}: ${visibleLine(detail)}`,
    ...(remedy === undefined ? [] : [`        ${visibleLine(remedy)}`]),
  ])
