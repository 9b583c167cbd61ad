/**
 * Structured logs: one JSON object per line, `{time, level, service, msg, ...fields}`.
 *
 * The lines of one turn of the event loop are written together. A reader of our stdout that is slow or gone never blocks
 * the service: up to 8 MiB of lines wait, further lines are dropped, and the next line counts them.
 */
import { type ConsolaInstance, createConsola, LogLevels } from 'consola/core'
import { isoTime } from '../text/iso-time.ts'
import type { bothLogEvents } from './events/both.ts'
import type { controlLogEvents } from './events/control.ts'
import type { CONTEXT_FIELDS } from './events/event.ts'
import type { runtimeLogEvents } from './events/runtime.ts'

export type LogFields = Record<string, unknown>

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Bytes of lines that may wait for a slow reader. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024

/** The output of a log. `write` takes whole lines and never throws. `drain` resolves when all of them are written. */
export interface LineSink {
  write(lines: string): void
  drain(): Promise<void>
}

/** Every message that a service may log. The declarations are types here: they are not part of the executables. */
type Declared = typeof bothLogEvents & typeof controlLogEvents & typeof runtimeLogEvents

/** Messages of a level. */
export type Message<L extends LogLevel> = {
  [M in keyof Declared]: Declared[M]['level'] extends L ? M : never
}[keyof Declared]

type Fields<M extends keyof Declared> = {
  readonly [F in keyof Declared[M]['fields'] | keyof typeof CONTEXT_FIELDS]?: unknown
}

/** A log for messages that are not ours, such as those of a custom executor. */
export interface OpenLog {
  debug(msg: string, fields?: LogFields): void
  info(msg: string, fields?: LogFields): void
  warn(msg: string, fields?: LogFields): void
  error(msg: string, fields?: LogFields): void
  with(fields: LogFields): OpenLog
}

export class Log {
  readonly #consola: ConsolaInstance
  readonly #fields: LogFields | undefined
  constructor(consola: ConsolaInstance, fields?: LogFields) {
    this.#consola = consola
    this.#fields = fields
  }
  debug<M extends Message<'debug'>>(msg: M, fields?: Fields<M>): void {
    this.#consola.debug(msg, this.#all(fields))
  }
  info<M extends Message<'info'>>(msg: M, fields?: Fields<M>): void {
    this.#consola.info(msg, this.#all(fields))
  }
  warn<M extends Message<'warn'>>(msg: M, fields?: Fields<M>): void {
    this.#consola.warn(msg, this.#all(fields))
  }
  error<M extends Message<'error'>>(msg: M, fields?: Fields<M>): void {
    this.#consola.error(msg, this.#all(fields))
  }
  #all(fields: LogFields | undefined): LogFields | undefined {
    return this.#fields === undefined ? fields : { ...this.#fields, ...fields }
  }
  /** A log that adds `fields` to each line. */
  with(fields: LogFields): Log {
    return new Log(this.#consola, { ...this.#fields, ...fields })
  }
  get debugging(): boolean {
    return this.#consola.level >= LogLevels.debug
  }
}

/** Every line names its `service`, because the lines of several services often end up in one stream. */
export function createLog(sink: LineSink, level: LogLevel, service: string): Log {
  const consola = createConsola({
    level: LogLevels[level],
    // By default consola folds repeated lines into one. Others count our lines.
    throttle: 0,
    throttleMin: Number.MAX_SAFE_INTEGER,
    reporters: [
      {
        log({ date, type, args: [msg, fields] }) {
          const line = { time: isoTime(date.getTime()), level: type, service, msg, ...(fields as LogFields) }
          sink.write(`${JSON.stringify(line)}\n`)
        },
      },
    ],
  })
  return new Log(consola)
}

/** A log without output. */
export const silentLog = (): Log => createLog({ write: () => {}, drain: async () => {} }, 'error', 'silent')

/** Writes lines to standard output. Its reader may be gone; then the service continues without logs. */
export function stdoutLines(): LineSink {
  const out = Bun.stdout.writer({ highWaterMark: 256 * 1024 })
  return queuedLines({
    lost: 'log lines dropped: stdout is read too slowly',
    async put(lines) {
      out.write(lines)
      await out.flush()
    },
  })
}

export interface LineTarget {
  /** The message that counts dropped lines. */
  readonly lost: Message<'warn'>
  /** Writes lines. Called again when the last call has resolved. No lines are written any more after it throws. */
  put(lines: string): Promise<void>
}

/** Collects the lines of a turn of the event loop for one `put`. Never waits for it, and drops lines beyond the limit. */
export function queuedLines({ lost, put }: LineTarget): LineSink {
  let waiting = ''
  let dropped = 0
  let isClosed = false
  let scheduled = false
  let flushing: Promise<void> | undefined

  const flush = async () => {
    await undefined // the caller stores this promise before it can resolve
    while (waiting !== '' && !isClosed) {
      const lines = waiting
      waiting = ''
      try {
        await put(lines)
      } catch {
        isClosed = true
      }
    }
    flushing = undefined
  }

  return {
    write(lines) {
      if (isClosed) return
      if (waiting.length + lines.length > MAX_WAITING_BYTES) {
        dropped++
        return
      }
      if (dropped > 0) {
        waiting += `${JSON.stringify({ time: new Date().toISOString(), level: 'warn', msg: lost, dropped })}\n`
        dropped = 0
      }
      waiting += lines
      if (scheduled || flushing !== undefined) return
      scheduled = true
      setImmediate(() => {
        scheduled = false
        if (flushing === undefined) flushing = flush()
      })
    },
    async drain() {
      while (flushing !== undefined || (waiting !== '' && !isClosed)) {
        flushing ??= flush()
        await flushing
      }
    },
  }
}
