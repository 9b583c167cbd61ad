/** The graph of the demo, and what can be said once it has ended. */
import { existsSync, readFileSync } from 'node:fs'
import type { TaskRecord } from '../../shared/contract/control.ts'

/** Tasks that run next to each other. */
const WIDTH = 20

/** What a task notes at its start: the mark of its attempt. */
const NOTE = 'echo "$TASKMILL_TASK"'

/** Layers of tasks, each of which waits for one of the layer before. Each notes its start at `notes`. */
export function wideGraph(size: number, notes: string): object {
  const tasks = Array.from({ length: size }, (_, i) => ({
    id: `t${i}`,
    type: 'runtime.script',
    params: { script: `${NOTE} >> '${notes}'; sleep 0.${1 + (i % 5)}` },
    depends_on: i < WIDTH ? [] : [`t${i - WIDTH}`],
  }))
  return { name: 'demo-cluster', tasks }
}

export interface Outcome {
  readonly isWell: boolean
  readonly lines: readonly string[]
}

/** What was lost of `size` tasks, and which attempts started twice. */
export function outcomeOf(records: readonly TaskRecord[], size: number, notes: string): Outcome {
  const succeeded = records.filter(({ status }) => status === 'success')
  const others = records.filter(({ status }) => status !== 'success')
  const starts = existsSync(notes) ? readFileSync(notes, 'utf8').split('\n').slice(0, -1) : []
  const attempts = starts.map((mark) => mark.slice(mark.indexOf(':') + 1))
  const twice = attempts.filter((attempt, i) => attempts.indexOf(attempt) !== i)
  const missing = size - records.length
  return {
    isWell: succeeded.length === size && twice.length === 0,
    lines: [
      `${succeeded.length} of ${size} tasks succeeded${missing > 0 ? `, ${missing} are not there` : ''}.`,
      ...others.map(({ id, status, error = '' }) => `  ${id}: ${status} ${error}`),
      `${attempts.length} attempts started${twice.length > 0 ? `, and these started twice: ${twice.join(', ')}` : ', none of them twice'}.`,
    ],
  }
}
