/** A pool that has one runtime service, under any name. */
import type { RuntimePool } from '../../control/executors/runtime/pool.ts'
import type { RuntimeService } from '../../control/executors/runtime/service.ts'

export const poolOf = (service: Partial<RuntimeService>): RuntimePool => ({ get: () => ({ service }) }) as never
