/**
 * Ends the processes that have to do with a directory, and removes it.
 *
 * A service, its launchers and its tasks name the directory in their arguments, environment, working directory or open
 * files. They are killed, not asked: nothing of what they know is kept.
 */
import { chmodSync, existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Milliseconds until processes that do not go are an error. A killed process goes unless the kernel is stuck. */
const GONE_WITHIN_MS = 20_000

/** Milliseconds that processes get for an end of their own, where `/proc` does not tell which ones are theirs. */
const TERM_MS = 3_000

/** Ends the processes, and removes the directory. Throws if some do not go, with their pids. */
export async function sweep(directory: string): Promise<void> {
  const start = performance.now()
  for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, 50)) {
    const pids = processesOf(directory)
    const elapsedMs = performance.now() - start
    for (const pid of pids) end(pid, hasProc() || elapsedMs > TERM_MS ? 'SIGKILL' : 'SIGTERM')
    if (pids.length === 0) break
    if (elapsedMs > GONE_WITHIN_MS) throw new Error(`processes of ${directory} do not end: ${pids.join(', ')}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  remove(directory)
}

const hasProc = () => existsSync('/proc/self/cmdline')

/** Pids of the processes that have to do with `path`, or what is below it. A task may hide all marks but its parent. */
export function processesOf(path: string): number[] {
  if (!hasProc()) return processesByCommand(path)
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.filter((pid) => Number(pid) !== process.pid && names(pid, path)).map(Number)
}

function names(pid: string, path: string): boolean {
  const dir = `/proc/${pid}`
  const open = () => readdirSync(`${dir}/fd`).map((fd) => linkOf(`${dir}/fd/${fd}`))
  return [
    () => readFileSync(`${dir}/cmdline`, 'utf8'),
    () => readFileSync(`${dir}/environ`, 'utf8'),
    () => linkOf(`${dir}/cwd`),
    () => open().join('\n'),
  ].some((look) => {
    try {
      return look().includes(path)
    } catch {
      return false // it has ended, or is not ours to look at
    }
  })
}

/** Where a link leads; nowhere when it is not there, or not ours to look at. */
export function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

/** On systems without `/proc`. */
function processesByCommand(path: string): number[] {
  const { stdout } = Bun.spawnSync(['ps', '-axo', 'pid=,command='])
  const lines = stdout.toString().split('\n')
  return lines.flatMap((line) => {
    const [, pid, command] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? []
    return command?.includes(path) && Number(pid) !== process.pid ? [Number(pid)] : []
  })
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // it has ended by itself
  }
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true })
  } catch {
    makeWritable(directory) // a task may have taken the rights away
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Level by level: a task may have made directories within directories without end. */
function makeWritable(directory: string): void {
  for (let level = [directory]; level.length > 0; ) {
    for (const each of level) chmodSync(each, 0o700)
    level = level.flatMap((each) =>
      readdirSync(each, { withFileTypes: true }).flatMap((entry) =>
        entry.isDirectory() ? [join(each, entry.name)] : [],
      ),
    )
  }
}
