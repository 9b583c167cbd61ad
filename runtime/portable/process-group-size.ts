/** Counts the living processes of a process group, by /proc, or by `ps` where there is none. */
import { allPids, isZombie, processStat } from '../../shared/process/processes.ts'

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
