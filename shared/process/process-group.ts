/**
 * A local process with its descendants, as a process group.
 *
 * The child leads its own session and process group (`setsid`), so one signal reaches it and its descendants, except
 * those that leave the group. `finished` resolves once the leader has ended, the rest of the group was killed and the
 * output was read. A process that left the group is not killed. It may keep the output open, which is then read only
 * for a moment.
 */
import { closeSync } from 'node:fs'
import type { Subprocess } from 'bun'
import { systemCodeOf } from '../contract/errors.ts'
import { openAnonymousFile } from '../files/anonymous-file.ts'
import { GrowingPause } from '../http/growing-pause.ts'
import { BoundedOutput, type BoundedText } from '../streams/bounded-output.ts'
import { MaskTexts } from '../streams/masker.ts'
import { closeEnds, openPipe } from './pipe.ts'
import { PipeReader } from './pipe-reader.ts'
import { startBelowReserve } from './process-reserve.ts'
import { allPids, isZombie, processStat } from './processes.ts'

export interface GroupOptions {
  readonly command: readonly [program: string, ...args: string[]]
  readonly cwd?: string
  /** The whole environment. Nothing of ours is added. */
  readonly env: Readonly<Record<string, string>>
  /** Text for standard input. Default: nothing. */
  readonly stdin?: string
  /** Sends stderr to stdout, in the order of the writes. */
  readonly mergeStreams?: boolean
  /** Texts that are masked in the output, before anybody sees it. */
  readonly masks?: readonly Uint8Array[]
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
  /** Empty if the streams are merged. */
  readonly stderr: BoundedText
}

export interface ProcessGroup {
  /** The leader's pid, which is also the id of the group. */
  readonly pid: number
  /** The output so far. */
  readonly stdout: BoundedOutput
  /** Undefined if the streams are merged. */
  readonly stderr: BoundedOutput | undefined
  /** Resolves when the leader has ended. The rest of the group may still run. */
  readonly leaderEnded: Promise<void>
  /** Resolves when the whole group has ended. */
  readonly finished: Promise<FinishedGroup>
  /** Sends TERM to the group now, and KILL after the grace time. */
  stop(): void
}

/** Milliseconds between two looks at whether a group is empty. The kernel has no event for that. */
const LOOK_PAUSES = { firstMs: 1, longestMs: 20 }

/** Milliseconds after which a killed group counts as ended. A process that is left then hangs in the kernel. */
const KILLED_MS = 1_000

/** Milliseconds for reading the output that a process outside the group keeps open. */
export const STRAY_OUTPUT_MS = 200

const NOTHING: BoundedText = { text: '', truncated: false }

/** Starts a group. Throws the system's error (`code` ENOENT, EACCES, E2BIG ...) if the program cannot start. */
export function startGroup(options: GroupOptions): ProcessGroup {
  const { cwd, env, stdin = '', mergeStreams = false, maxStreamBytes, killGraceMs } = options
  const masks = options.masks && new MaskTexts(options.masks)
  const input = stdin === '' ? null : openAnonymousFile(stdin)
  const out = openPipe()
  const err = mergeStreams ? null : openPipe()
  let child: Subprocess<'ignore' | number, number | 'pipe', number | 'pipe' | 'ignore'>
  try {
    const command = mergeStreams && out === null ? mergedByShell(options.command) : [...options.command]
    const spawnOptions = {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...env },
      detached: true,
      stdin: input ?? 'ignore',
      stdout: out?.writeEnd ?? 'pipe',
      stderr: mergeStreams ? (out?.writeEnd ?? 'ignore') : (err?.writeEnd ?? 'pipe'),
    } as const
    child = startBelowReserve(() => Bun.spawn(command, spawnOptions))
  } catch (error) {
    closeEnds('readEnd', [out, err])
    throw error
  } finally {
    closeEnds('writeEnd', [out, err])
    if (input !== null) closeSync(input)
  }

  const stdout = new BoundedOutput(maxStreamBytes)
  const stderr = mergeStreams ? undefined : new BoundedOutput(maxStreamBytes)
  const ofStdout = new PipeReader(stdout, out, child.stdout, masks)
  const ofStderr = stderr && new PipeReader(stderr, err, child.stderr, masks)

  const finish = async (): Promise<FinishedGroup> => {
    await child.exited
    await endGroup(child.pid, killGraceMs)
    try {
      const [read, readOfStderr = NOTHING] = await Promise.all([
        ofStdout.finish(STRAY_OUTPUT_MS),
        ofStderr?.finish(STRAY_OUTPUT_MS),
      ])
      return { ending: endingOf(child), stdout: read, stderr: readOfStderr }
    } finally {
      closeEnds('readEnd', [out, err])
    }
  }
  return {
    ...{ pid: child.pid, stdout, stderr },
    leaderEnded: child.exited.then(() => {}),
    finished: finish(),
    stop: () => void endGroup(child.pid, killGraceMs),
  }
}

/**
 * stdout and stderr can share a pipe of ours, but not one of Bun's. Without ours, a shell merges them and execs the
 * command.
 */
const mergedByShell = (command: readonly string[]): string[] => ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh', ...command]

const endingOf = (child: Subprocess): Ending =>
  child.signalCode === null ? { exitCode: child.exitCode ?? 0 } : { signal: String(child.signalCode) }

/** Sends TERM to the group, and KILL after `graceMs`. Resolves when the group has ended. */
export async function endGroup(pid: number, graceMs: number): Promise<void> {
  if (!signalGroup(pid, 'SIGTERM')) return
  if (await isEmptyWithin(pid, graceMs)) return
  signalGroup(pid, 'SIGKILL')
  await isEmptyWithin(pid, KILLED_MS)
}

/** Sends KILL to the group. False if a process of it still runs after `ms`. */
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

/** False if the group has no members. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal)
    return true
  } catch (error) {
    // EPERM: there are members, but with another user id. We may not signal them.
    return systemCodeOf(error) === 'EPERM'
  }
}

/**
 * Whether all members of the group are zombies, whose parent has not reaped them yet, as the first process of many
 * containers. A signal to such a group succeeds.
 */
function hasOnlyZombies(group: number): boolean {
  if (process.platform !== 'linux') return false
  return allPids().every((pid) => {
    const stat = processStat(pid)
    return stat === undefined || stat.group !== group || isZombie(stat)
  })
}
