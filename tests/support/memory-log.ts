/** A log that keeps its lines in memory. */
import { createLog, type Log, type LogLevel, type OpenLog } from '../../shared/logs/log.ts'

export interface MemoryLog {
  readonly log: Log
  /** The same, for any messages. */
  readonly openLog: OpenLog
  /** The lines as written, each with its line end. */
  readonly texts: readonly string[]
  /** The lines as objects. */
  lines(): Readonly<Record<string, unknown>>[]
}

export function memoryLog(level: LogLevel = 'info'): MemoryLog {
  const texts: string[] = []
  const log = createLog({ write: (lines) => void texts.push(lines), drain: async () => {} }, level, 'test')
  return { log, openLog: log, texts, lines: () => texts.map((text) => JSON.parse(text) as Record<string, unknown>) }
}
