/** Ends the service after a defect of its own: changes in memory reach the disk as far as they can, then the process exits. */
import type { Log } from '../shared/logs/log.ts'
import type { Keeper } from './log/keeper.ts'

/** The service could not do its work any more; a service manager should start it again. */
export const FAULT_EXIT_CODE = 1

/** Milliseconds for the last sync. A disk that takes longer must not keep the service from being started again. */
const LAST_SYNC_MS = 5_000

/**
 * Makes all changes so far durable and exits with `FAULT_EXIT_CODE`. Running attempts are left to the next start, which
 * ends them as after a crash. `exit` stops the child processes of the service, writes its last log lines and exits.
 */
export async function exitAfterFault(
  fault: string,
  log: Log,
  keeper: Pick<Keeper, 'kept'>,
  exit: (code: number) => Promise<void>,
): Promise<void> {
  const late = Bun.sleep(LAST_SYNC_MS).then(() => 'late' as const)
  const synced = Promise.resolve(keeper.kept('promise')).then(
    () => 'synced' as const,
    () => 'failed' as const,
  )
  log.error('the service ends because of a defect; start it again', {
    cause: fault,
    journal: await Promise.race([synced, late]),
  })
  await exit(FAULT_EXIT_CODE)
}
