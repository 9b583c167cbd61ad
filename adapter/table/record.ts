/** The record of a task as text: its fields, earlier attempts, its output. Pure. */
import type { AttemptRecord, TaskRecord } from '../../shared/contract/control.ts'
import { isObject } from '../../shared/text/json.ts'
import { alignedFields, alignedRows, type Cell } from './columns.ts'
import { generalTable, textLines } from './general.ts'
import type { Look } from './look.ts'
import { reusedWords, tookWords, typeWords } from './tasks.ts'
import { waitingWords } from './waiting.ts'
import { taskStateCell, timeAgo } from './words.ts'

export function recordTable(record: TaskRecord, look: Look): string[] {
  const { attempts = [], result } = record
  return [
    ...alignedFields(fieldsOf(record, look.nowMs), look),
    ...(attempts.length === 0 ? [] : ['', look.paint('bold', 'attempts'), ...attemptRows(attempts, look)]),
    ...(result === undefined ? [] : ['', ...resultLines(result, look)]),
  ]
}

function fieldsOf(record: TaskRecord, nowMs: number): [string, Cell][] {
  const {
    id,
    graph_id,
    attempt = 0,
    depends_on = [],
    run_if,
    when,
    continue_on_error,
    waiting,
    error,
    runtime,
  } = record
  const code = runtime?.error?.code
  const fields: [string, Cell][] = [
    ['id', { text: id, style: 'bold' }],
    ['status', taskStateCell(record)],
    ['type', { text: typeWords(record) }],
    ['graph', { text: graph_id }],
    ['after', { text: depends_on.join(', ') }],
    ['run if', { text: run_if ?? '' }],
    ['when', { text: when === undefined ? '' : JSON.stringify(when) }],
    ['failure', { text: continue_on_error ? 'tolerated' : '' }],
    ['waiting', { text: waitingWords(waiting) }],
    ['attempt', { text: attempt > 0 ? String(attempt) : '' }],
    ['created', { text: timeAgo(record.created_at, nowMs) }],
    ['took', { text: tookWords(record, nowMs) }],
    ['reused from', { text: reusedWords(record) }],
    ['error', { text: error ?? '', style: 'red' }],
    ['code', { text: code ?? '' }],
  ]
  return fields.filter(([, { text }]) => text !== '')
}

const attemptRows = (attempts: readonly AttemptRecord[], look: Look): string[] =>
  alignedRows(
    ['ATTEMPT', 'TOOK', 'EXIT', 'CODE', 'ERROR'],
    attempts.map((attempt) => [
      { text: String(attempt.attempt), isRight: true },
      { text: attempt.finished_at === undefined ? '' : tookWords(attempt, 0), isRight: true },
      { text: String(attempt.exit_code ?? ''), isRight: true },
      { text: attempt.code ?? '' },
      { text: attempt.error ?? 'succeeded' },
    ]),
    look,
  )

/** Output comes last and as text; other values as fields. */
function resultLines(result: unknown, look: Look): string[] {
  if (!isObject(result)) return generalTable({ result }, look)
  const outputs = Object.entries(result).filter(([name, value]) => OUTPUTS.has(name) && typeof value === 'string')
  const others = Object.fromEntries(Object.entries(result).filter(([name]) => !OUTPUTS.has(name)))
  return [
    ...(Object.keys(others).length === 0 ? [] : generalTable({ result: others }, look)),
    ...outputs.flatMap(([name, text]) =>
      text === '' ? [] : ['', look.paint('bold', name), ...textLines(String(text), look)],
    ),
  ]
}

const OUTPUTS: ReadonlySet<string> = new Set(['stdout', 'stderr', 'output', 'content', 'body'])
