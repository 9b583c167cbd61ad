/** The initial content of a task directory, and whether it may serve another task. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { hiddenEnv } from '../../shared/process/hidden-env.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import type { TaskDirContent } from '../files/task-dir.ts'

/** `text` is the request as stored in the database, with the values of `env`, which the file does not have. */
export const taskDirContent = (request: TaskRequest, text: string): TaskDirContent => ({
  request: withoutSecrets(request, text),
  script: request.execution.kind === 'script' ? request.execution.script : undefined,
  workspaceSubdir: request.sandbox.workspace_subdir ?? '',
})

function withoutSecrets(request: TaskRequest, text: string): string {
  const { execution } = request
  if (Object.keys(execution.env).length === 0) return text
  return JSON.stringify({ ...request, execution: { ...execution, env: hiddenEnv(execution.env) } })
}

/**
 * Whether no process outside of a task can have got an open file of it. The process profile promises nothing of that kind:
 * its tasks reach each other's files in any case. A sandbox hands files on only through a socket that others see, too.
 */
export const keepsItsFiles = (
  { effective_sandbox: { profile, namespaces, chroot } }: ExecutionPlan,
  exposed: readonly string[],
): boolean =>
  profile === 'process' ||
  (namespaces?.mount === true && namespaces.pid && namespaces.net && !chroot && exposed.length === 0)
