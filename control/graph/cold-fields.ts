/**
 * Fields that few tasks use, in objects of their own that a task allocates on first use.
 *
 * There may be a million tasks, and an undefined field takes as much memory as any other. With these fields in the task
 * itself, 100,000 tasks that use none of them would take 23.5 MB of heap instead of 20.3 MB.
 */

import type { Cache } from '../../shared/contract/cache.ts'
import type { AttemptRecord, ProgressEntry, ReusedFrom } from '../../shared/contract/control.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import { type RunRule, runRule, type SkipStanding } from './conditions.ts'
import type { Failure } from './failure.ts'
import { type FanOutRule, fanOutRule } from './fan-out-rule.ts'
import type { ResultFile } from './result-file.ts'
import { type RetryRule, retryRule } from './retry-rule.ts'
import type { ValidTask } from './validate.ts'

/** Optional settings of a submitted task. All tasks that set none share one object. */
export interface TaskOptions {
  readonly retry: number
  /** Milliseconds. */
  readonly timeout: number | undefined
  /** Milliseconds. */
  readonly queueTimeout: number | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
  readonly secrets: SecretNames | undefined
  readonly rule: RunRule | undefined
  readonly retries: RetryRule | undefined
  readonly fanOutRule: FanOutRule | undefined
  readonly cache: Cache | undefined
}

const NO_OPTIONS: TaskOptions = {
  retry: 0,
  timeout: undefined,
  queueTimeout: undefined,
  annotations: undefined,
  secrets: undefined,
  rule: undefined,
  retries: undefined,
  fanOutRule: undefined,
  cache: undefined,
}

export function taskOptions(task: ValidTask): TaskOptions {
  const { retry, timeout, queue_timeout, annotations, secrets } = task
  const rule = runRule(task)
  const retries = retryRule(task)
  const fan = fanOutRule(task)
  const cache = cacheOf(task)
  const hasRules = rule !== undefined || retries !== undefined || fan !== undefined || cache !== undefined
  const isPlain = !hasRules && secrets == null && queue_timeout == null
  if (isPlain && !retry && timeout == null && annotations == null) return NO_OPTIONS
  return {
    retry: retry ?? 0,
    timeout: timeout == null ? undefined : asInt64(timeout),
    queueTimeout: queue_timeout == null ? undefined : asInt64(queue_timeout),
    annotations: annotations ?? undefined,
    secrets: secrets ?? undefined,
    rule,
    retries,
    cache,
    fanOutRule: fan,
  }
}

/** The largest number that is an int64, for doubles: one more step is 2 ** 63, which callers with 64-bit integers cannot read. */
const MAX_INT64 = 2 ** 63 - 1024

/** JSON readers round the ends of the range of int64 to a number beyond it. */
const asInt64 = (value: number): number => Math.max(-MAX_INT64, Math.min(value, MAX_INT64))

/** Without a null. */
function cacheOf({ cache }: ValidTask): Cache | undefined {
  if (cache == null) return undefined
  const { key, ttl_ms } = cache
  return ttl_ms == null ? { key } : { key, ttl_ms }
}

/** Identifies an attempt that another service carries out. The attempt may outlive our process. */
export interface Handle {
  /** The id of the attempt in that service. */
  readonly id: string
  /** Whether the service has confirmed the attempt. Otherwise its answer may have been lost. */
  readonly isTaken: boolean
  /** The owner of the attempt in that service, if the service requires it to end the attempt. */
  readonly owner?: string | undefined
  /** The name of that service, if the executor has several. Absent in files of earlier versions. */
  readonly runtime?: string | undefined
  /** How often a service of that name had been lost when the attempt was placed there. Absent: never. */
  readonly losses?: number | undefined
  /** Hashes of files that are moved there first, by the path of the input. */
  readonly bundles?: Readonly<Record<string, string>> | undefined
}

/** State that most tasks never have. `Task` documents each field at its getter. */
export class ColdFields {
  isConditionMet = false
  askedAt: number | undefined = undefined
  isBackingOff = false
  hasPlaceholders = false
  resolvedInput: unknown = undefined
  inputFile: ResultFile | undefined = undefined
  interruptedAttempts = 0
  ownCreatedAt: number | undefined = undefined
  failure: Failure | undefined = undefined
  errorText: string | undefined = undefined
  skipStanding: SkipStanding | undefined = undefined
  progress: ProgressEntry[] | undefined = undefined
  attempts: readonly AttemptRecord[] | undefined = undefined
  process: ProcessIdentity | undefined = undefined
  handle: Handle | undefined = undefined
  reusedFrom: ReusedFrom | undefined = undefined
}
