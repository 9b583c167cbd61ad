/** What each attempt in a runtime service stands on. */
import type { FileMoves } from './file-moves.ts'
import type { Orphans } from './orphans.ts'
import type { RuntimePool } from './pool.ts'
import type { PoolMember } from './pool-member.ts'
import type { RemoteRemovals } from './remote-removals.ts'
import type { ContextDefaults } from './request.ts'

export interface RuntimeGround {
  readonly pool: RuntimePool
  readonly orphans: Orphans
  readonly removals: RemoteRemovals
  readonly moves: FileMoves
  readonly defaults: ContextDefaults
  /** Milliseconds that a runtime service may be unreachable before its attempts fail. */
  readonly awayMs: number
  /** Whether an unreachable runtime service is about to start. */
  readonly isExpected: (member: PoolMember) => boolean
}
