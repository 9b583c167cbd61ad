/** Name of the variable that every process of a task carries, and its launcher. The other side of it is title.h. */
export const TASK_MARK = 'TASKMILL_TASK'
