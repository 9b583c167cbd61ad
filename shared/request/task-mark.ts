/** Environment variable that marks the processes of a task, and its launcher. The other side is setproctitle.h. Pure. */
export const TASK_MARK = 'TASKMILL_TASK'
