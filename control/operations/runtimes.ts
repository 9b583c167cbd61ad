/** The pool of runtime services: lists, adds, drains and removes them. Changes are kept before the answer. */

import { badRequest } from '../../shared/contract/errors.ts'
import type { RuntimeLabels } from '../../shared/contract/runtime-names.ts'
import { RUNTIME_NAME_RULE } from '../../shared/contract/runtime-names.ts'
import {
  type PooledRuntime,
  RuntimeRegistration,
  type RuntimeRemoval,
  type RuntimesResponse,
} from '../../shared/contract/runtimes.ts'
import { shownUrl } from '../../shared/http/shown-url.ts'
import { socketPathOf } from '../../shared/http/socket-address.ts'
import { isToken, TOKEN_RULE } from '../../shared/http/token-form.ts'
import { runSync } from '../../shared/process/steps.ts'
import { FREE_FIELDS, type UnknownFields } from '../../shared/request/unknown-names.ts'
import {
  isRuntimeName,
  type RuntimeEntry,
  runtimeLabelsFault,
  runtimeUrlOf,
} from '../../shared/settings/runtime-entry.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import type { RuntimePool } from '../executors/runtime/pool.ts'
import type { PoolMember } from '../executors/runtime/pool-member.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import { refuseUnknownFields } from '../json/request-fields.ts'
import { type Pause, shownPause } from '../rules/pause.ts'
import type { PooledEntry } from '../rules/pool-state.ts'
import { runtimeNow } from './capacity.ts'
import type { OperationParts } from './parts.ts'
import { toldPause } from './pause.ts'
import { type AttemptsElsewhere, assertAllTold, attemptsElsewhere, attemptsHere } from './placed-attempts.ts'

const NOWHERE: AttemptsElsewhere = { counts: new Map(), missing: [] }

/** All runtime services, with what they have left. Those that are away take up to two seconds. */
export async function listRuntimes(
  parts: OperationParts,
): Promise<RuntimesResponse & { readonly missing: readonly number[] }> {
  const { runtimePool } = parts
  const { members } = runtimePool
  const looking = Promise.all(members.map((member) => member.capacity.look()))
  const [elsewhere, looks] = await Promise.all([attemptsElsewhere(parts), looking])
  const runtimes = members.map((member, i) => {
    return { ...pooled(runtimePool, member, elsewhere), ...runtimeNow(looks[i]!) }
  })
  return { runtimes, missing: elsewhere.missing }
}

/** Adds the runtime service that `body` describes, or gives a known one other labels or another token. Throws 400, 409 and 503. */
export async function addRuntime(
  parts: OperationParts,
  body: Uint8Array,
): Promise<{ readonly runtime: PooledRuntime; readonly isNew: boolean }> {
  const { runtimePool, unknownFields, log } = parts
  const entry = registrationIn(body, unknownFields, runtimePool)
  const { name, url, labels } = entry
  const known = runtimePool.get(name)
  const isMoved = known !== undefined && known.url !== url
  const here = isMoved ? (await attemptsHere(parts)).get(name) : 0
  const elsewhere = isMoved ? await attemptsElsewhere(parts) : NOWHERE // one that registers itself comes every ten seconds
  assertAllTold(name, elsewhere)
  const added = await runtimePool.add(entry, { here: here ?? 0, elsewhere: elsewhere.counts.get(name) ?? 0 })
  const isNew = known === undefined
  if (isNew) log.info('a runtime service was added', { runtime: name, url, labels })
  else if (isMoved) {
    log.warn('a runtime service has another address', { runtime: name, url, earlier_url: known.url })
  }
  return { runtime: pooled(runtimePool, added, elsewhere), isNew }
}

/** Throws 404 and 503. */
export async function drainRuntime(
  parts: OperationParts,
  name: string,
  drain: Pause | undefined,
): Promise<PooledRuntime> {
  const { runtimePool, log } = parts
  const elsewhere = await attemptsElsewhere(parts)
  const wasDraining = runtimePool.get(name)?.isDraining
  const drained = await runtimePool.drain(name, drain)
  if (wasDraining !== drained.isDraining) {
    if (drain === undefined) log.info('a runtime service gets tasks again', { runtime: name })
    else log.info('a runtime service gets no new tasks', { runtime: name, ...toldPause(drain) })
  }
  return pooled(runtimePool, drained, elsewhere)
}

/** Removes a runtime service. With `isLost` its attempts fail. Throws 404, 409 and 503. */
export async function removeRuntime(parts: OperationParts, name: string, isLost: boolean): Promise<RuntimeRemoval> {
  const { runtimePool, log } = parts
  const elsewhere = await attemptsElsewhere(parts)
  if (!isLost) assertAllTold(name, elsewhere)
  const here = (await attemptsHere(parts)).get(name) ?? 0
  const known = { here, elsewhere: elsewhere.counts.get(name) ?? 0 }
  const attempts = await runtimePool.remove(name, { isLost, attempts: known })
  log.warn('a runtime service was removed', { runtime: name, attempts })
  return { name, attempts }
}

const pooled = (
  pool: RuntimePool,
  { name, url, labels, isDraining, drain, isConfigured }: PooledEntry | PoolMember,
  { counts }: AttemptsElsewhere,
): PooledRuntime => ({
  ...{ name, url: shownUrl(url), labels, draining: isDraining, configured: isConfigured },
  ...(drain !== undefined && drain.since > 0 && { drain: shownPause(drain) }),
  attempts: pool.attemptCount(name) + (counts.get(name) ?? 0),
})

const FIELDS = Object.keys(RuntimeRegistration.properties)

function registrationIn(body: Uint8Array, unknownFields: UnknownFields, pool: RuntimePool): RuntimeEntry {
  const decoded = runSync(decodeJson(body, {}))
  if (!isObject(decoded)) throw invalidJson(`expected object, got ${jsonTypeOf(decoded)}`)
  const given = withoutNulls(decoded)
  refuseUnknownFields(given, { names: FIELDS, free: FREE_FIELDS }, unknownFields)
  const { name, url, labels = {}, token } = given
  if (typeof name !== 'string' || !isRuntimeName(name)) throw badRequest(`name: expected ${RUNTIME_NAME_RULE}`)
  const base = typeof url === 'string' ? runtimeUrlOf(url) : undefined
  // Only the flag may name a socket of this machine, where other services listen, too.
  const isForeign = base !== undefined && socketPathOf(base) !== undefined && !pool.isConfiguredAt(name, base)
  if (base === undefined || base !== shownUrl(base) || isForeign) {
    throw badRequest('url: expected an http: or https: address without user and query, such as http://10.0.0.7:18080')
  }
  const fault = runtimeLabelsFault('labels', labels)
  if (fault !== undefined) throw badRequest(fault)
  if (token !== undefined && !(typeof token === 'string' && isToken(token)))
    throw badRequest(`token: expected ${TOKEN_RULE}`)
  return { name, url: base, labels: labels as RuntimeLabels, token }
}
