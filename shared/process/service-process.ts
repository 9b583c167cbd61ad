/** The process of a service: its log, its stop signals, and an exit that writes the last log lines. */
import { createLog, type Log, type LogLevel, stdoutLines } from '../logs/log.ts'
import { fileLines } from '../logs/log-file.ts'
import { StartStopped, StopSignals } from './stop-signals.ts'

export interface ServiceProcess {
  readonly log: Log
  readonly signals: StopSignals
  /** Writes the last log lines, then exits. */
  readonly exit: (code: number) => Promise<void>
}

export interface LogSettings {
  readonly logLevel: LogLevel
  /** Empty for standard output. */
  readonly logFile: string
  readonly maxLogBytes: number
}

/** Milliseconds for writing the last log lines. A slow reader of our output must not keep the service from ending. */
const LAST_LINES_MS = 1_000

/**
 * Calls `start` of the service `name`. Returns undefined once it runs, and the exit code 0 if a signal stopped the start.
 * Throws what `start` throws otherwise.
 */
export async function startService(
  name: string,
  { logLevel, logFile, maxLogBytes }: LogSettings,
  start: (process: ServiceProcess) => Promise<void>,
): Promise<number | undefined> {
  const lines = logFile === '' ? stdoutLines() : fileLines(logFile, maxLogBytes)
  const lastLines = async () => void (await Promise.race([lines.drain(), Bun.sleep(LAST_LINES_MS)]))
  const log = createLog(lines, logLevel, name)
  const exit = async (code: number) => {
    await lastLines()
    process.exit(code)
  }
  try {
    await start({ log, signals: new StopSignals(), exit })
    return undefined
  } catch (error) {
    if (!(error instanceof StartStopped)) throw error
    log.info('stopped before it listened', { signal: error.signal })
    await lastLines()
    return 0
  }
}
