/** The result of a runtime task: its status in the runtime service, as control stores it. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'

export interface RuntimeResult extends TaskStatusResponse {
  /** Where all of each stream can be read. */
  readonly logs: { readonly stdout: string; readonly stderr: string }
}

/** Undefined for other tasks, and for one that the runtime service never took. */
export function runtimeResultOf({ type, result }: TaskRecord): RuntimeResult | undefined {
  const isOne = type === 'runtime' && typeof result === 'object' && result !== null && 'execution_plan' in result
  return isOne ? (result as RuntimeResult) : undefined
}
