/** The initial content of a task directory. Pure. */
import { hiddenEnv } from '../../shared/process/hidden-env.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import type { TaskDirContent } from '../files/task-dir.ts'

/** `text` is the request as stored in the database, with the values of `env`, which the file does not have. */
export const taskDirContent = (request: TaskRequest, text: string): TaskDirContent => ({
  request: withoutSecrets(request, text),
  script: request.execution.kind === 'script' ? request.execution.script : undefined,
  stdin: request.execution.stdin,
  workspaceSubdir: request.sandbox.workspace_subdir ?? '',
})

function withoutSecrets(request: TaskRequest, text: string): string {
  const { execution } = request
  if (Object.keys(execution.env).length === 0) return text
  return JSON.stringify({ ...request, execution: { ...execution, env: hiddenEnv(execution.env) } })
}
