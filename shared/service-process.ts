/** The process of a service: its log, its stop signals, and an exit that writes the last log lines. */
import { createLog, type Log, type LogLevel, stdoutLines } from './log.ts'
import { StartStopped, StopSignals } from './stop-signals.ts'

export interface ServiceProcess {
  readonly log: Log
  readonly signals: StopSignals
  /** Writes the last log lines, then exits. */
  readonly exit: (code: number) => Promise<void>
}

/** Milliseconds for writing the last log lines. A slow reader of our output must not keep the service from ending. */
const LAST_LINES_MS = 1_000

/**
 * Calls `start` of the service `name`. Returns undefined once it runs, and the exit code 0 if a signal stopped the start.
 * Throws what `start` throws otherwise.
 */
export async function startService(
  name: string,
  logLevel: LogLevel,
  start: (process: ServiceProcess) => Promise<void>,
): Promise<number | undefined> {
  const lines = stdoutLines()
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
