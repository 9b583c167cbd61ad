/** What the directory of a task begins with, and whose it is. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import type { TaskRequest } from '../intake/validate.ts'
import type { TaskDirContent } from '../store/task-dir.ts'

/** `text` is the request as it is kept; `sandboxUid` is the user of tasks in a sandbox, where that is another than the service's. */
export const taskDirContent = (
  { execution, sandbox }: TaskRequest,
  text: string,
  { effective_sandbox }: ExecutionPlan,
  sandboxUid: number | undefined,
): TaskDirContent => ({
  request: text,
  script: execution.kind === 'script' ? execution.script : undefined,
  workspaceSubdir: sandbox.workspace_subdir ?? '',
  ...(effective_sandbox.profile === 'linux_sandbox' && sandboxUid !== undefined && { owner: sandboxUid }),
})

/** Whether another user goes to the workspace by its path on the host: without mounts of its own there is no other way. */
export const needsPassage = ({ effective_sandbox }: ExecutionPlan, sandboxUid: number | undefined): boolean =>
  effective_sandbox.profile === 'linux_sandbox' && sandboxUid !== undefined && !effective_sandbox.namespaces?.mount
