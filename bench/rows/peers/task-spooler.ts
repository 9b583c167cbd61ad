/**
 * Debian's task-spooler: a queue on this machine, `tsp -nf /bin/true` for each task, which waits for its end and drops
 * its output. Nothing is written down.
 */
import { join } from 'node:path'
import type { Lifetime } from '../../lifetime.ts'
import { commandLoop } from '../../runtime/loops.ts'
import type { ProcessTarget } from '../processes.ts'

export async function taskSpooler(lifetime: Lifetime): Promise<ProcessTarget[]> {
  const program = Bun.which('tsp')
  if (program === null) return []
  // Its server outlives the commands: HOME is what the end of the bench finds it by.
  const env = { TS_SOCKET: join(lifetime.dir, 'tsp.socket'), HOME: `${lifetime.dir}/`, TMPDIR: lifetime.dir }
  const loop = await commandLoop('tsp', [program, '-nf', '/bin/true'], lifetime, env)
  if (loop === undefined) return []
  const setSlots = async (slots: number) => {
    const { exitCode } = Bun.spawnSync([program, '-S', String(slots)], { env, stdio: ['ignore', 'ignore', 'ignore'] })
    if (exitCode !== 0) throw new Error(`tsp -S ${slots} ended with ${exitCode}`)
  }
  return [{ name: 'tsp', description: 'tsp -nf /bin/true', loop, setSlots }]
}
