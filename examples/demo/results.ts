/** Shows the outcome of each task as a table. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { formatDuration } from '../../shared/text/live-view/frame.ts'
import { cut, fit, type Paint, type Style } from '../../shared/text/live-view/palette.ts'
import type { GraphProgress, TaskProgress } from '../../shared/text/live-view/progress.ts'
import type { ExampleTask } from './graph.ts'

export function renderResults(
  tasks: readonly ExampleTask[],
  { tasks: progress }: GraphProgress,
  records: readonly TaskRecord[],
  columns: number,
  paint: Paint,
): string[] {
  const outcomes = tasks.map((task, i) => outcomeOf(task, progress[i]!))
  const idColumns = Math.max(...tasks.map(({ id }) => id.length))
  const outcomeColumns = Math.max(...outcomes.map(({ text }) => text.length))
  const row = (id: string, outcome: string, tries: string, time: string, result: string) =>
    cut(` ${id}  ${outcome}  ${fit(tries, 2)}  ${time.padStart(6)}  ${result}`, columns)
  const header = row(fit('task', idColumns), fit('outcome', outcomeColumns), '', 'time', 'what came of it')
  return [
    paint('bold', header),
    ...tasks.map(({ id }, i) => {
      const { attempt, startMs = 0, endMs = 0 } = progress[i]!
      const { style, text } = outcomes[i]!
      const outcome = paint(style, fit(text, outcomeColumns))
      return row(
        fit(id, idColumns),
        outcome,
        attempt > 1 ? `×${attempt}` : '',
        attempt > 0 ? formatDuration(endMs - startMs) : '',
        paint('dim', summaryOf(records.find((record) => record.id === id))),
      )
    }),
  ]
}

function outcomeOf({ annotations }: ExampleTask, { phase, isSurprise }: TaskProgress): { style: Style; text: string } {
  if (isSurprise) return { style: 'red', text: `${phase}, not expected` }
  if (annotations.expect === 'success') return { style: 'green', text: phase }
  return { style: 'yellow', text: annotations.expect === 'failed' ? 'failed on purpose' : phase }
}

/** The words of the failure, what the task says of its result, or else the command that it ran. */
export function summaryOf(record: TaskRecord | undefined): string {
  if (record === undefined) return ''
  if (record.error !== undefined) return oneLine(record.error)
  const { status_code, bytes_written, stdout, content } = asObject(record.result)
  if (status_code !== undefined)
    return bytes_written === undefined ? `${status_code}` : `${status_code}, ${bytes_written} bytes saved`
  if (typeof content === 'string') return `${linesOf(content).length} lines read`
  const printed = typeof stdout === 'string' ? linesOf(stdout) : []
  if (printed.length === 1) return oneLine(printed[0]!)
  if (printed.length > 1) return `${printed.length} lines, the last: ${oneLine(printed.at(-1)!)}`
  return commandOf(record)
}

function commandOf(record: TaskRecord): string {
  const { command, args } = asObject(record.input)
  return typeof command === 'string' ? oneLine(['$', command, ...(Array.isArray(args) ? args : [])].join(' ')) : ''
}

const asObject = (value: unknown): Readonly<Record<string, unknown>> =>
  value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '')

/** Nothing that a task printed may move the cursor. */
export const oneLine = (text: string): string =>
  Bun.stripANSI(text)
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim()
