/** The control groups of tasks that do not run: launchers were killed, and could not remove them. */
import { messageOf } from '../../shared/errors.ts'
import type { Log } from '../../shared/log.ts'
import { removeAbandonedGroups } from '../launcher/abandoned-groups.ts'
import type { TaskCgroups } from '../launcher/cgroup.ts'

type Groups = Pick<TaskCgroups, 'end' | 'taskIds'>

const CANNOT_BE_ENDED = 'the control group of a task that does not run cannot be ended'

/** Ends the group of one, with all that is in it. False, and logged, where that is not possible. Never rejects. */
export async function endGroup(cgroups: Groups, task_id: string, log: Log): Promise<boolean> {
  try {
    if (await cgroups.end(task_id)) return true
    log.error(CANNOT_BE_ENDED, { task_id })
  } catch (error) {
    // A task that may write to its group can bring it into states in which nothing of it can be read.
    log.error(CANNOT_BE_ENDED, { task_id, cause: messageOf(error) })
  }
  return false
}

/** Ends what an earlier service has left. Never rejects: a group that stays is no reason not to start. */
export async function endLeftGroups(cgroups: Groups, isRunning: (taskId: string) => boolean, log: Log): Promise<void> {
  let taskIds: string[] = []
  try {
    taskIds = cgroups.taskIds()
  } catch (error) {
    log.error('the control groups of tasks cannot be listed', { cause: messageOf(error) })
  }
  for (const taskId of taskIds) if (!isRunning(taskId)) await endGroup(cgroups, taskId, log)
}

/** Removes the empty groups of other services that are gone for ever; logs its end at level debug. Never rejects. */
export async function sweepAbandonedGroups(cgroups: TaskCgroups, log: Log): Promise<void> {
  try {
    const { removed, unanswered } = await removeAbandonedGroups(cgroups)
    if (unanswered.length > 0)
      log.warn('control groups stay: the file system of their service does not answer', { groups: unanswered })
    if (removed > 0) log.info('control groups of services that are gone removed', { services: removed })
    log.debug('control groups of other services checked')
  } catch (error) {
    log.warn('control groups of services that are gone cannot be removed', { cause: messageOf(error) })
  }
}
