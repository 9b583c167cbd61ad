/** What a launcher writes down that was refused a process. */
import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'

export function writeRefusal(taskDir: string): void {
  const outcome = ['version=1', 'how=launch_failed', 'step=fork', `errno=${constants.errno.EAGAIN}`, 'reason=none']
  const numbers = ['finished_ms=3000', 'duration_ms=0', 'leftovers_killed=0', 'leftovers_alive=0', 'end=1']
  writeFileSync(join(taskDir, 'outcome'), `${[...outcome, ...numbers].join('\n')}\n`)
}
