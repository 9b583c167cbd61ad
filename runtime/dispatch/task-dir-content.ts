/** What the directory of a task begins with, and whose it is. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { hiddenEnv } from '../../shared/hidden-env.ts'
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import type { TaskDirContent } from '../store/task-dir.ts'

/** `text` is the request as the database keeps it, with the values of `env`, which the file does without. `sandboxUid` is the user of tasks in a sandbox, where that is another than the service's. */
export function taskDirContent(
  request: TaskRequest,
  text: string,
  plan: ExecutionPlan,
  sandboxUid: number | undefined,
): TaskDirContent {
  const owner = workspaceOwner(plan, sandboxUid)
  return {
    request: withoutSecrets(request, text),
    script: request.execution.kind === 'script' ? request.execution.script : undefined,
    workspaceSubdir: request.sandbox.workspace_subdir ?? '',
    ...(owner !== undefined && { owner }),
  }
}

/** The user of the task, where that is another than the service's. */
export const workspaceOwner = (
  { effective_sandbox }: ExecutionPlan,
  sandboxUid: number | undefined,
): number | undefined => (effective_sandbox.profile === 'linux_sandbox' ? sandboxUid : undefined)

function withoutSecrets(request: TaskRequest, text: string): string {
  const { execution } = request
  if (Object.keys(execution.env).length === 0) return text
  return JSON.stringify({ ...request, execution: { ...execution, env: hiddenEnv(execution.env) } })
}

/** Whether another user goes to the workspace by its path on the host: without mounts of its own there is no other way. */
export const needsPassage = ({ effective_sandbox }: ExecutionPlan, sandboxUid: number | undefined): boolean =>
  effective_sandbox.profile === 'linux_sandbox' && sandboxUid !== undefined && !effective_sandbox.namespaces?.mount
