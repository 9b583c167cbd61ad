/** The record of an MCP call, from its task. The handle of a call is the id of its task; for a tenant, with that of its graph. Pure. */
import type { HandleRecord } from '../../shared/contract/mcp.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { ResultFile } from '../rules/result-file.ts'
import type { Task } from './graph.ts'

/** Omits an `output` that is in a file. */
export function handleRecord(task: Task): HandleRecord {
  const { id, graph, status, startedAt, finishedAt, result, rare } = task
  const { failure } = rare
  const error =
    failure ?? (status === 'skipped' ? { code: 'cancelled' as const, message: rare.error ?? '' } : undefined)
  return {
    task_id: id,
    status: task.runStatus ?? (status === 'pending' ? 'accepted' : status),
    handle_id: graph.tenant === undefined ? id : task.address,
    started_at: isoTime(startedAt ?? task.createdAt),
    progress: task.rare.progress ?? [],
    ...(result !== undefined && !(result instanceof ResultFile) && { output: result }),
    ...(error !== undefined && { error }),
    ...(finishedAt !== undefined && {
      finished_at: isoTime(finishedAt),
      ...(startedAt !== undefined && { duration_ms: Math.max(0, finishedAt - startedAt) }),
    }),
  }
}
