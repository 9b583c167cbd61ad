/**
 * Keeps a task from ever starting whose launcher has not begun: because that hangs, or the fork server does.
 *
 * The task gets its outcome now. No launcher starts a task that has one, however late it comes to look (task-dir.c). One
 * that had looked before shows the mark of the task, and can be ended by it; what it has written of the task by then counts,
 * and is put in the place of ours.
 */
import { closeSync, constants, linkSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { constants as system } from 'node:os'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { UNBEGUN_STEP } from '../launcher/faults.ts'
import type { Reason } from '../launcher/outcome.ts'

const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants

/** What outcome.h says of a task that was not started; `reason` is why it is not to be. */
const outcomeText = (reason: Reason): string =>
  [
    'version=1',
    'how=launch_failed',
    `step=${UNBEGUN_STEP}`,
    `errno=${system.errno.ETIMEDOUT}`,
    `reason=${reason}`,
    `finished_ms=${Date.now()}`,
    'duration_ms=0',
    'leftovers_killed=0',
    'leftovers_alive=0',
    'end=1\n',
  ].join('\n')

/** An outcome that is there already stays, and without a directory no task starts. Throws where none can be written. */
export function forestall(taskDir: string, reason: Reason, log: Log): void {
  const draft = join(taskDir, 'outcome.service')
  let fd: number
  try {
    fd = openSync(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return
    throw error
  }
  try {
    writeSync(fd, outcomeText(reason))
  } catch (error) {
    // A name is enough to keep the task from starting.
    log.warn('cannot write why a task is not started', { cause: messageOf(error) })
  } finally {
    closeSync(fd)
  }
  try {
    linkSync(draft, join(taskDir, 'outcome'))
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}
