/**
 * The record that a launcher writes about its task: `started` while it runs, `outcome` once it has ended. Pure.
 *
 * outcome.h says what each key means and when it is absent. An incomplete or malformed text gives undefined: a file
 * counts as a whole or not at all. Unknown keys are skipped, since a launcher may be newer than the service that reads
 * its record.
 */

/** The process of a task. No other process ever has the same pid, start time and boot id. */
export interface LaunchedProcess {
  readonly launcher_pid: number
  readonly pid: number
  readonly pgid: number
  /** Clock ticks between boot and start. */
  readonly start_time: number
  readonly boot_id: string
  /** Milliseconds since 1970. */
  readonly started_ms: number
}

/** Why the launcher ended the task. `none` if the task ended by itself. */
export const REASONS = ['none', 'wall_time', 'kill', 'output_limit', 'disk_limit', 'terminated'] as const
export type Reason = (typeof REASONS)[number]

export type Ending =
  | { readonly how: 'exited'; readonly exit_code: number }
  | { readonly how: 'signaled'; readonly signal: number }
  /** The process did not end after KILL. */
  | { readonly how: 'abandoned' }
  /** The task could not be started or sandboxed as requested: the failed step, and the system's reason. */
  | {
      readonly how: 'launch_failed' | 'sandbox_setup_failed'
      readonly step: string
      readonly errno: number
      /** The target, or the tree, of the failed mount (launch/sandbox-view.ts). */
      readonly mount?: string
    }

export interface Outcome {
  readonly ending: Ending
  readonly reason: Reason
  /** Absent when there was no process. */
  readonly process?: LaunchedProcess
  readonly finished_ms: number
  readonly duration_ms: number
  readonly user_cpu_ms?: number
  readonly system_cpu_ms?: number
  readonly max_rss_bytes?: number
  readonly memory_peak_bytes?: number
  readonly oom_kills?: number
  readonly stdout_bytes?: number
  readonly stderr_bytes?: number
  /** Bytes that the task has allocated in its workspace; absent without a limit. */
  readonly disk_bytes?: number
  /** 1 if directories of the workspace were too deep to be counted; absent otherwise. */
  readonly disk_too_deep?: number
  readonly leftovers_killed: number
  readonly leftovers_alive: number
}

const VERSION = '1'
const LAST_LINE = '\nend=1\n'

/** Ends the first part of an outcome. The rest may be incomplete. */
const STARTED = /^(?:[a-z_]+=.*\n)*?started_ms=\d+\n/

/** The process, also from the first part of an outcome, and from a complete one. */
export function parseStarted(text: string): LaunchedProcess | undefined {
  const [started] = STARTED.exec(text) ?? []
  return started === undefined ? undefined : read(started, processOf)
}

export const parseOutcome = (text: string): Outcome | undefined =>
  text.endsWith(LAST_LINE) ? read(text, outcomeOf) : undefined

function outcomeOf(lines: Lines): Outcome {
  return {
    ending: endingOf(lines),
    reason: lines.oneOf('reason', REASONS),
    ...(lines.has('pid') ? { process: processOf(lines) } : {}),
    finished_ms: lines.number('finished_ms'),
    duration_ms: lines.number('duration_ms'),
    ...lines.optional('user_cpu_ms'),
    ...lines.optional('system_cpu_ms'),
    ...lines.optional('max_rss_bytes'),
    ...lines.optional('memory_peak_bytes'),
    ...lines.optional('oom_kills'),
    ...lines.optional('stdout_bytes'),
    ...lines.optional('stderr_bytes'),
    ...lines.optional('disk_bytes'),
    ...lines.optional('disk_too_deep'),
    leftovers_killed: lines.number('leftovers_killed'),
    leftovers_alive: lines.number('leftovers_alive'),
  }
}

function processOf(lines: Lines): LaunchedProcess {
  return {
    launcher_pid: lines.number('launcher_pid'),
    pid: lines.number('pid'),
    pgid: lines.number('pgid'),
    start_time: lines.number('start_time'),
    boot_id: lines.text('boot_id'),
    started_ms: lines.number('started_ms'),
  }
}

function endingOf(lines: Lines): Ending {
  const how = lines.oneOf('how', ['exited', 'signaled', 'abandoned', 'launch_failed', 'sandbox_setup_failed'])
  if (how === 'exited') return { how, exit_code: lines.number('exit_code') }
  if (how === 'signaled') return { how, signal: lines.number('signal') }
  if (how === 'abandoned') return { how }
  const mount = lines.has('mount') ? { mount: lines.text('mount') } : {}
  return { how, step: lines.text('step'), errno: lines.number('errno'), ...mount }
}

function read<T>(text: string, build: (lines: Lines) => T): T | undefined {
  try {
    return build(new Lines(text))
  } catch (error) {
    if (error instanceof Malformed) return undefined
    throw error
  }
}

class Malformed extends Error {}

/** The lines `key=value` of a record. Throws `Malformed` for a key that is missing, repeated or has the wrong form. */
class Lines {
  private readonly values = new Map<string, string>()

  constructor(text: string) {
    if (!text.endsWith('\n')) throw new Malformed()
    for (let begin = 0; begin < text.length; ) {
      const end = text.indexOf('\n', begin)
      const equals = text.indexOf('=', begin)
      const key = text.slice(begin, equals)
      if (equals <= begin || equals > end || this.values.has(key)) throw new Malformed()
      this.values.set(key, text.slice(equals + 1, end))
      begin = end + 1
    }
    if (this.values.get('version') !== VERSION) throw new Malformed()
  }

  has(key: string): boolean {
    return this.values.has(key)
  }

  text(key: string): string {
    const value = this.values.get(key)
    if (value === undefined || value === '') throw new Malformed()
    return value
  }

  number(key: string): number {
    const text = this.text(key)
    if (!/^\d{1,15}$/.test(text)) throw new Malformed()
    return Number(text)
  }

  optional<K extends string>(key: K): { [P in K]?: number } {
    return this.has(key) ? ({ [key]: this.number(key) } as { [P in K]?: number }) : {}
  }

  oneOf<const T extends string>(key: string, values: readonly T[]): T {
    const text = this.text(key)
    const value = values.find((candidate) => candidate === text)
    if (value === undefined) throw new Malformed()
    return value
  }
}
