/** The pool of runtime services: lists, adds, drains and removes them. Changes are on disk before the answer. */
import type { RuntimeLabels } from '../../shared/contract/placement.ts'
import { DEFAULT_RUNTIME, RUNTIME_NAME_RULE } from '../../shared/contract/placement.ts'
import {
  type PooledRuntime,
  RuntimeRegistration,
  type RuntimeRemoval,
  type RuntimesResponse,
} from '../../shared/contract/runtimes.ts'
import { badRequest } from '../../shared/errors.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/json.ts'
import type { Log } from '../../shared/log.ts'
import { nearestName } from '../../shared/nearest-name.ts'
import { baseUrlOf, isRuntimeName, type RuntimeEntry, runtimeLabelsFault } from '../../shared/runtime-entry.ts'
import { isYieldDue, runCooperatively, runSync, type Steps } from '../../shared/steps.ts'
import { didYouMean, FREE_FIELDS, firstUnknown, quoted, type UnknownFields } from '../../shared/unknown-names.ts'
import type { RuntimePool } from '../executors/runtime/pool.ts'
import type { PoolMember } from '../executors/runtime/pool-member.ts'
import { decodeJson, invalidJson } from '../json/body.ts'
import type { TaskStore } from '../store/tasks.ts'
import { runtimeNow } from './capacity.ts'

export interface RuntimesParts {
  readonly runtimePool: RuntimePool
  readonly store: Pick<TaskStore, 'graphs'>
  readonly unknownFields: UnknownFields
  readonly log: Log
}

/** All runtime services, with what they have left. Those that are away take up to two seconds. */
export async function listRuntimes({ runtimePool }: Pick<RuntimesParts, 'runtimePool'>): Promise<RuntimesResponse> {
  const looked = runtimePool.members.map(async (member) => ({
    ...pooled(runtimePool, member),
    ...runtimeNow(await member.capacity.look()),
  }))
  return { runtimes: await Promise.all(looked) }
}

/** Adds the runtime service that `body` describes, or gives a known one other labels. Throws 400, 409 and 503. */
export async function addRuntime(
  { runtimePool, store, unknownFields, log }: RuntimesParts,
  body: Uint8Array,
): Promise<{ readonly runtime: PooledRuntime; readonly isNew: boolean }> {
  const entry = registrationIn(body, unknownFields)
  const { name, url, labels } = entry
  const known = runtimePool.get(name)
  const attempts = known === undefined || known.url === url ? 0 : await runCooperatively(attemptsOn(store, name))
  const { member, isNew } = runtimePool.add(entry, attempts)
  if (isNew) log.info('a runtime service was added', { runtime: name, url, labels })
  return { runtime: pooled(runtimePool, member), isNew }
}

/** Throws 404 and 503. */
export function drainRuntime({ runtimePool, log }: RuntimesParts, name: string, isDraining: boolean): PooledRuntime {
  const wasDraining = runtimePool.get(name)?.isDraining
  const member = runtimePool.drain(name, isDraining)
  if (wasDraining !== isDraining) {
    log.info(isDraining ? 'a runtime service gets no new tasks' : 'a runtime service gets tasks again', {
      runtime: name,
    })
  }
  return pooled(runtimePool, member)
}

/** Removes a runtime service. With `isLost` its attempts fail. Throws 404, 409 and 503. */
export async function removeRuntime(
  { runtimePool, store, log }: RuntimesParts,
  name: string,
  isLost: boolean,
): Promise<RuntimeRemoval> {
  const there = await runCooperatively(attemptsOn(store, name))
  const attempts = runtimePool.remove(name, { isLost, attempts: there })
  log.warn('a runtime service was removed', { runtime: name, attempts })
  return { name, attempts }
}

const pooled = (pool: RuntimePool, { name, url, labels, isDraining, isConfigured }: PoolMember): PooledRuntime => ({
  ...{ name, url: withoutUser(url), labels, draining: isDraining, configured: isConfigured },
  attempts: pool.attemptCount(name),
})

/** An address without user and password. */
function withoutUser(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.username === '' && parsed.password === '')) return url
  parsed.username = ''
  parsed.password = ''
  return parsed.href.replace(/\/+$/, '')
}

/** Number of attempts that have a handle of this runtime service, those of an earlier run among them. */
function* attemptsOn(store: Pick<TaskStore, 'graphs'>, name: string): Steps<number> {
  let count = 0
  let steps = 0
  for (const graph of store.graphs) {
    if (isYieldDue(++steps)) yield
    if (graph.live === 0) continue
    for (const { isTerminal, handle } of graph.tasks) {
      if (!isTerminal && handle !== undefined && (handle.runtime ?? DEFAULT_RUNTIME) === name) count++
      if (isYieldDue(++steps)) yield
    }
  }
  return count
}

const FIELDS = Object.keys(RuntimeRegistration.properties)
const KNOWN_FIELDS: ReadonlySet<string> = new Set([...FIELDS, ...FREE_FIELDS])

function registrationIn(body: Uint8Array, unknownFields: UnknownFields): RuntimeEntry {
  const decoded = runSync(decodeJson(body, {}))
  if (!isObject(decoded)) throw invalidJson(`expected object, got ${jsonTypeOf(decoded)}`)
  const given = withoutNulls(decoded)
  const unknown = unknownFields === 'refuse' ? firstUnknown(given, KNOWN_FIELDS) : undefined
  if (unknown !== undefined) {
    throw badRequest(`unknown field ${quoted(unknown)}${didYouMean(nearestName(unknown, FIELDS))}`)
  }
  const { name, url, labels = {} } = given
  if (typeof name !== 'string' || !isRuntimeName(name)) throw badRequest(`name: expected ${RUNTIME_NAME_RULE}`)
  const base = typeof url === 'string' ? baseUrlOf(url) : undefined
  if (base === undefined || base !== withoutUser(base)) {
    throw badRequest('url: expected an http: or https: address without user and query, such as http://10.0.0.7:18080')
  }
  const fault = runtimeLabelsFault('labels', labels)
  if (fault !== undefined) throw badRequest(fault)
  return { name, url: base, labels: labels as RuntimeLabels }
}
