/**
 * Finds the processes of tasks without asking the service: processes that name a directory of tasks in their
 * environment, arguments, working directory or open files.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { linkOf, processesOf } from '../../client/testing/sweep.ts'
import { processStat } from '../../shared/process/processes.ts'
import { isAlive, until } from './until.ts'

export { linkOf, processesOf }

/** Waits until no process has to do with `path`. */
export const noProcessesOf = (path: string): Promise<number[]> =>
  until(
    () => processesOf(path),
    (pids) => pids.length === 0,
  )

/** Ends, at the end of a block, whatever tasks below `path` have left: for tests that end the service itself. */
export const endProcessesOf = (path: string): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => {
    await until(
      () => {
        const pids = processesOf(path)
        for (const pid of pids) end(pid)
        return pids.length
      },
      (left) => left === 0,
    )
  },
})

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended by itself
  }
}

/** Waits until the process is gone, or a zombie. */
export const gone = (pid: number): Promise<boolean> => until(() => isAlive(pid), false)

/** Pids of the children of a process, zombies included. */
export const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => textOf(`/proc/${pid}/task/${thread}/children`).trim().split(' '))
    .filter((child) => child !== '')
    .map(Number)

/** What a file of `/proc` holds; nothing if its thread or process has just ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Stops a process, and waits until it is. */
export async function stopProcess(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await until(() => processStat(pid)?.state, 'T')
}

/** The process that starts tasks for a service, once there is one. */
export function forkServerOf(service: number): Promise<number> {
  const isForkServer = (pid: number) => textOf(`/proc/${pid}/cmdline`).includes('\0--fork-server\0')
  return until(() => childrenOf(service).find(isForkServer)!)
}
