/** Which requests need a service that can open files by descriptors, as only Linux lets it. Pure. */
import type { TaskRequest } from '../../shared/request/validate.ts'
import { Refusal } from '../refusal.ts'

/** Throws `unsupported_capability` for a request that names files, unless the service runs on Linux. */
export function ensureFiles({ inputs, outputs }: Pick<TaskRequest, 'inputs' | 'outputs'>, platform: string): void {
  const field = inputs !== undefined ? 'inputs' : outputs !== undefined ? 'outputs' : undefined
  if (platform === 'linux' || field === undefined) return
  throw new Refusal(
    'unsupported_capability',
    `${field} needs a runtime service on Linux (this one runs on ${platform})`,
  )
}
