/**
 * A local process and all it started.
 *
 * The child leads a session and a process group of its own (`setsid`), so one signal reaches it and its descendants,
 * except those that leave the group on purpose. Nothing of a group outlives its leader: `finished` resolves once the
 * leader has ended, the rest of the group was ended and the output is in. A process that left the group is not ours to
 * end, but it does not hold us up either: it may keep our end of the output open for a moment, then we let go of it.
 */
import { closeSync } from 'node:fs'
import type { Subprocess } from 'bun'
import { openAnonymousFile } from './anonymous-file.ts'
import { type BoundedText, readBounded } from './bounded-output.ts'
import { systemCodeOf } from './errors.ts'
import { GrowingPause } from './growing-pause.ts'
import { closeEnds, openPipe, streamOf } from './pipe.ts'
import { allPids, processStat } from './processes.ts'
import { TextTail } from './text-tail.ts'

export interface GroupOptions {
  readonly command: readonly [program: string, ...args: string[]]
  readonly cwd?: string
  /** All of it: nothing of our own environment is added. */
  readonly env: Readonly<Record<string, string>>
  /** What the program may read from its standard input; whether it does is its own business. Default: nothing. */
  readonly stdin?: string
  /** Sends stderr where stdout goes: `stdout` then has both in the order in which they were written. */
  readonly mergeStreams?: boolean
  /** Bytes kept of each of stdout and stderr. */
  readonly maxStreamBytes: number
  /** Milliseconds between TERM and KILL. */
  readonly killGraceMs: number
}

/** How the leader ended: an exit code, or the name of a signal. */
export type Ending =
  | { readonly exitCode: number; readonly signal?: never }
  | { readonly signal: string; readonly exitCode?: never }

export interface FinishedGroup {
  readonly ending: Ending
  readonly stdout: BoundedText
  /** Empty where the streams are merged. */
  readonly stderr: BoundedText
}

export interface ProcessGroup {
  /** The leader's pid, which is also the id of the group. */
  readonly pid: number
  /** Resolves when the leader has ended; its ending is settled then, whatever is still to be cleaned up. */
  readonly leaderEnded: Promise<void>
  /** Resolves when nothing of the group is left. */
  readonly finished: Promise<FinishedGroup>
  /** TERM to the whole group now, KILL to what is left of it after the grace time. */
  stop(): void
}

/** Milliseconds between two looks at whether a group is empty. The kernel has no event for that. */
const LOOK_PAUSES = { firstMs: 1, longestMs: 20 }

/** Milliseconds after which a killed group counts as ended. What then is left cannot be killed: it hangs in the kernel. */
const KILLED_MS = 1_000

/** Milliseconds that a process which left the group may hold up our reading of its output. */
export const STRAY_OUTPUT_MS = 200

const NOTHING: BoundedText = { text: '', truncated: false }

/** Starts a group. Throws the system's error (`code` ENOENT, EACCES, E2BIG ...) when the program cannot start. */
export function startGroup(options: GroupOptions): ProcessGroup {
  const { cwd, env, stdin = '', mergeStreams = false, maxStreamBytes, killGraceMs } = options
  const input = stdin === '' ? null : openAnonymousFile(stdin)
  const out = openPipe()
  const err = mergeStreams ? null : openPipe()
  let child: Subprocess<'ignore' | number, number | 'pipe', number | 'pipe' | 'ignore'>
  try {
    child = Bun.spawn(mergeStreams && out === null ? mergedByShell(options.command) : [...options.command], {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...env },
      detached: true,
      stdin: input ?? 'ignore',
      stdout: out?.writeEnd ?? 'pipe',
      stderr: mergeStreams ? (out?.writeEnd ?? 'ignore') : (err?.writeEnd ?? 'pipe'),
    })
  } catch (error) {
    closeEnds('readEnd', [out, err])
    throw error
  } finally {
    closeEnds('writeEnd', [out, err])
    if (input !== null) closeSync(input)
  }

  const stopReading = new AbortController()
  const read = (pipe: typeof out, stream: unknown) =>
    readBounded(streamOf(pipe, stream), maxStreamBytes, { signal: stopReading.signal, tail: new TextTail() })
  const output = Promise.all([read(out, child.stdout), mergeStreams ? NOTHING : read(err, child.stderr)])

  const finish = async (): Promise<FinishedGroup> => {
    await child.exited
    await endGroup(child.pid, killGraceMs)
    const timer = setTimeout(() => stopReading.abort(), STRAY_OUTPUT_MS)
    try {
      const [stdout, stderr] = await output
      return { ending: endingOf(child), stdout, stderr }
    } finally {
      clearTimeout(timer)
      closeEnds('readEnd', [out, err])
    }
  }
  return {
    pid: child.pid,
    leaderEnded: child.exited.then(() => {}),
    finished: finish(),
    stop: () => void endGroup(child.pid, killGraceMs),
  }
}

/** Two descriptors can share a pipe of ours but not one of Bun's. Without ours a shell joins them, then steps aside. */
const mergedByShell = (command: readonly string[]): string[] => ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...command]

const endingOf = (child: Subprocess): Ending =>
  child.signalCode === null ? { exitCode: child.exitCode ?? 0 } : { signal: String(child.signalCode) }

/** TERM to the group, KILL to what is left of it after `graceMs`; resolves when nothing of it runs. */
export async function endGroup(pid: number, graceMs: number): Promise<void> {
  if (!signalGroup(pid, 'SIGTERM')) return
  if (await isEmptyWithin(pid, graceMs)) return
  signalGroup(pid, 'SIGKILL')
  await isEmptyWithin(pid, KILLED_MS)
}

/** KILL to the group; false when something of it still runs after `ms`. */
export async function killGroup(pid: number, ms: number): Promise<boolean> {
  return !signalGroup(pid, 'SIGKILL') || (await isEmptyWithin(pid, ms))
}

async function isEmptyWithin(pid: number, ms: number): Promise<boolean> {
  const until = performance.now() + ms
  const pauses = new GrowingPause(LOOK_PAUSES)
  for (;;) {
    if (!signalGroup(pid, 0) || hasOnlyZombies(pid)) return true
    if (performance.now() >= until) return false
    await Bun.sleep(pauses.next())
  }
}

/** False when the group has no member any more. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal)
    return true
  } catch (error) {
    // EPERM: members exist that changed their user id. They are not ours to signal, but they are there.
    return systemCodeOf(error) === 'EPERM'
  }
}

/**
 * Whether all members of the group have ended and only wait to be reaped by a parent that takes its time, as the first
 * process of many containers does. The kernel lets one signal such a group as if it were alive.
 */
function hasOnlyZombies(group: number): boolean {
  if (process.platform !== 'linux') return false
  return allPids().every((pid) => {
    const stat = processStat(pid)
    return stat === undefined || stat.group !== group || stat.state === 'Z' || stat.state === 'X'
  })
}
