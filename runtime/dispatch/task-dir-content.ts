/** The initial content and the owner of a task directory. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'
import { hiddenEnv } from '../../shared/hidden-env.ts'
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import type { TaskDirContent } from '../store/task-dir.ts'
import { type SandboxUsers, sandboxUser } from './sandbox-user.ts'

/**
 * `text` is the request as stored in the database, with the values of `env`, which the file does not have. `users`
 * are those of tasks in a sandbox, where they are not the user of the service.
 */
export function taskDirContent(
  request: TaskRequest,
  text: string,
  plan: ExecutionPlan,
  users: SandboxUsers | undefined,
): TaskDirContent {
  const owner = workspaceOwner(plan, users)
  return {
    request: withoutSecrets(request, text),
    script: request.execution.kind === 'script' ? request.execution.script : undefined,
    workspaceSubdir: request.sandbox.workspace_subdir ?? '',
    ...(owner !== undefined && { owner }),
  }
}

/** The user of the task, where that is not the user of the service. */
export const workspaceOwner = (
  { effective_sandbox }: ExecutionPlan,
  users: SandboxUsers | undefined,
): number | undefined => sandboxUser(effective_sandbox, users)?.uid

function withoutSecrets(request: TaskRequest, text: string): string {
  const { execution } = request
  if (Object.keys(execution.env).length === 0) return text
  return JSON.stringify({ ...request, execution: { ...execution, env: hiddenEnv(execution.env) } })
}

/**
 * Whether another user reaches the workspace by its path on the host, which is the only way without a mount namespace.
 */
export const needsPassage = ({ effective_sandbox }: ExecutionPlan, users: SandboxUsers | undefined): boolean =>
  sandboxUser(effective_sandbox, users) !== undefined && !effective_sandbox.namespaces?.mount

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
