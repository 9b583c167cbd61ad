/** Which requests need a service that can open files by descriptors, as only Linux lets it. Pure. */
import type { TaskRequest } from '../../shared/runtime-request/validate.ts'
import { Refusal } from '../refusal.ts'

/** Throws `unsupported_capability` for a request that names files, unless the service runs on Linux. */
export function ensureFiles(request: Pick<TaskRequest, 'outputs'>, platform: string): void {
  if (platform === 'linux' || request.outputs === undefined) return
  throw new Refusal('unsupported_capability', `outputs needs a runtime service on Linux (this one runs on ${platform})`)
}
