/** On whose behalf a task is run: kept with it, and for tenant and owner obeyed. Nothing here is a credential. Pure. */
import type { ControlContext } from '../contract/runtime-request.ts'
import { requestFault } from './fault.ts'
import { checkTextMap, isBlank } from './text.ts'

/** Characters of a tenant, an owner and the like. */
export const MAX_NAME_CHARACTERS = 256

const NAMES = ['control_plane_mode', 'tenant', 'owner', 'expected_runtime_profile'] as const

/** Throws `RequestFault` with the first fault. */
export function validControlContext(given: ControlContext = {}): ControlContext {
  const { labels = {}, owner } = given
  if (Object.keys(labels).some(isBlank)) throw requestFault('control_context.labels keys cannot be empty')
  const values = [...NAMES.flatMap((name) => given[name] ?? []), ...Object.values(labels)]
  if (values.some(isBlank)) throw requestFault('control_context values cannot be empty strings')
  for (const name of NAMES) {
    const length = given[name]?.length ?? 0
    if (length > MAX_NAME_CHARACTERS) {
      throw requestFault(`control_context.${name} has ${length} characters (at most ${MAX_NAME_CHARACTERS})`)
    }
  }
  if (owner !== undefined && !canBeSent(owner)) {
    throw requestFault(
      'control_context.owner cannot begin or end with a space or contain control characters: no kill could name it in a header',
    )
  }
  checkTextMap('control_context.labels', labels)
  return given
}

/** Whether a header can have this value: an owner that cannot be named makes a task that cannot be killed. */
const canBeSent = (owner: string): boolean => owner === owner.trim() && !/\p{Cc}/u.test(owner)
