/** What is told of the processes of a task: by /proc, and where there is none (macOS) by `ps` and `sysctl`. */
import { allPids, identify, isZombie, type ProcessIdentity, processStat } from '../../shared/process/processes.ts'
import type { LaunchedProcess } from '../launch/outcome.ts'

export function launchedProcess(pid: number, started_ms: number): LaunchedProcess {
  const { start_time, boot_id } = identify(pid) ?? identityByCommands(pid)
  return { launcher_pid: process.pid, pid, pgid: pid, start_time, boot_id, started_ms }
}

/** In this case the start time is in seconds since 1970. */
export function identityByCommands(pid: number): ProcessIdentity {
  const started = Date.parse(outputOf(['ps', '-o', 'lstart=', '-p', String(pid)]))
  const boot = outputOf(['sysctl', '-n', 'kern.bootsessionuuid'])
  return { pid, start_time: Number.isNaN(started) ? 0 : started / 1_000, boot_id: boot === '' ? 'unknown' : boot }
}

function outputOf(command: string[]): string {
  try {
    const { stdout } = Bun.spawnSync(command, { env: { ...process.env, LC_ALL: 'C' }, stderr: 'ignore' })
    return stdout.toString().trim()
  } catch {
    return '' // the command does not exist
  }
}

/** The living processes of a process group. */
export function groupSize(group: number): number {
  return process.platform === 'linux' ? sizeByProc(group) : sizeByCommand(group)
}

function sizeByProc(group: number): number {
  const stats = allPids().map(processStat)
  return stats.filter((stat) => stat !== undefined && stat.group === group && !isZombie(stat)).length
}

export function sizeByCommand(group: number): number {
  const { stdout } = Bun.spawnSync(['ps', '-A', '-o', 'pgid=,stat='], { stderr: 'ignore' })
  const living = new RegExp(`^ *${group} +[^Z]`)
  return stdout
    .toString()
    .split('\n')
    .filter((line) => living.test(line)).length
}
