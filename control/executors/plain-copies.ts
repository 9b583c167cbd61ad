/**
 * Plain JSON copies, within named limits, of the values that an executor returns, throws or reports. Pure.
 *
 * An attempt whose values cannot be copied fails with `internal`, and the message names the part and the reason. These
 * functions never throw, so a bad value of an executor affects its attempt only.
 */
import { ERROR_CODES, type ErrorCode } from '../../shared/contract/error-codes.ts'
import { messageOf } from '../../shared/contract/errors.ts'
import { tailOf } from '../../shared/text/text-tail.ts'
import { MAX_JSON_DEPTH } from '../json/depth.ts'
import type { Failure } from '../rules/failure.ts'
import { type JsonLimits, plainJson } from '../rules/plain-json.ts'
import type { Handle } from '../task/rare-state.ts'
import { ExecutionError } from './executor.ts'

/** Maximum nesting. More than a caller may send, because an executor may wrap its input. */
const MAX_KEPT_LEVELS = MAX_JSON_DEPTH + 10

/** Maximum characters of a result. Copying this much takes about 0.1 s. */
export const RESULT_LIMITS: JsonLimits = { levels: MAX_KEPT_LEVELS, values: 1_000_000, characters: 64 * 1024 * 1024 }

/** Maximum characters of the `details` of a failure. They stay in memory and in the state file. */
export const DETAILS_LIMITS: JsonLimits = { levels: MAX_KEPT_LEVELS, values: 100_000, characters: 1024 * 1024 }

/**
 * Maximum characters of the `data` of a progress entry. A task keeps 100 entries and writes all of them with each
 * change.
 */
export const PROGRESS_LIMITS: JsonLimits = { levels: MAX_KEPT_LEVELS, values: 10_000, characters: 64 * 1024 }

/** Maximum characters of an error or of the message of a progress entry. Longer texts are cut. */
export const MAX_TEXT_CHARACTERS = 64 * 1024

/** The copy of a value, or why it cannot be copied. */
export type PlainCopy<T> = { readonly value: T } | { readonly fault: string }

function plainCopy(part: string, value: unknown, limits: JsonLimits): PlainCopy<unknown> {
  try {
    return { value: plainJson(value, limits) }
  } catch (error) {
    return { fault: `the ${part} cannot be kept as JSON: ${messageOf(error)}` }
  }
}

export const copyResult = (result: unknown): PlainCopy<unknown> => plainCopy('result', result, RESULT_LIMITS)

export interface ProgressReport {
  readonly message?: string
  readonly data?: unknown
}

export function copyProgress(message: unknown, data: unknown): PlainCopy<ProgressReport> {
  if (message !== undefined && message !== null && typeof message !== 'string')
    return { fault: `the message of a progress entry is no text: it is a ${typeof message}` }
  const plain = plainCopy('data of a progress entry', data, PROGRESS_LIMITS)
  if ('fault' in plain) return plain
  return {
    value: {
      ...(message != null && { message: cut(message) }),
      ...(plain.value !== undefined && { data: plain.value }),
    },
  }
}

const isShortText = (text: unknown): text is string => typeof text === 'string' && text.length <= MAX_TEXT_CHARACTERS

export function copyHandle(handle: Handle | undefined): PlainCopy<Handle | undefined> {
  try {
    if (handle === undefined) return { value: undefined }
    const { id, isTaken, owner, runtime, losses, bundles } = handle
    if (!isShortText(id)) return { fault: 'the id of the handle is no text, or too long' }
    if (owner !== undefined && !isShortText(owner)) return { fault: 'the owner of the handle is no text, or too long' }
    if (runtime !== undefined && !isShortText(runtime))
      return { fault: 'the runtime of the handle is no text, or too long' }
    if (losses !== undefined && !Number.isSafeInteger(losses))
      return { fault: 'the losses of the handle are no number' }
    const optional = {
      ...(owner !== undefined && { owner }),
      ...(runtime !== undefined && { runtime }),
      ...(losses !== undefined && { losses }),
      ...(bundles !== undefined && { bundles: { ...bundles } }),
    }
    return { value: { id, isTaken: isTaken === true, ...optional } }
  } catch (error) {
    return { fault: `the handle cannot be read: ${messageOf(error)}` }
  }
}

/** A copy of what an executor threw. */
export interface FailureCopy {
  readonly failure: Failure
  readonly result?: unknown
  /** The end of the output, unless the result ends with it. */
  readonly tail?: string
  /** Whether the executor has a bug, as opposed to a failed task. */
  readonly isBroken: boolean
  /** No other attempt can end better. */
  readonly isFinal?: boolean
}

export function copyFailure(error: unknown): FailureCopy {
  try {
    if (error instanceof ExecutionError) return knownFailure(error)
  } catch (unreadable) {
    return broken(`the error cannot be read: ${messageOf(unreadable)}`)
  }
  return broken(messageOf(error))
}

const broken = (cause: string): FailureCopy => ({ failure: internal(cause), isBroken: true })

/** The failure of an attempt whose executor has a bug. */
export const internal = (cause: string): Failure => ({ code: 'internal', message: cut(`internal error: ${cause}`) })

function knownFailure(error: ExecutionError): FailureCopy {
  const { retryable, source, tail } = error
  const message = cut(String(error.message))
  const result = copyResult(error.result)
  const details = plainCopy('details', error.details, DETAILS_LIMITS)
  const fault = faultOf(result) ?? faultOf(details)
  if (fault !== undefined) return broken(`${fault} (the attempt failed: ${message})`)
  const failure: Failure = {
    ...{ code: codeOf(error.code), message },
    ...(typeof retryable === 'boolean' && { retryable }),
    ...(typeof source === 'string' && { source: cut(source) }),
    ...valueAs('details', details),
  }
  return {
    ...{ failure, isBroken: false },
    ...(error.isFinal === true && { isFinal: true }),
    ...valueAs('result', result),
    ...(typeof tail === 'string' && { tail: tailOf(tail) }),
  }
}

const faultOf = (copy: PlainCopy<unknown>): string | undefined => ('fault' in copy ? copy.fault : undefined)

const valueAs = (name: string, copy: PlainCopy<unknown>) =>
  'value' in copy && copy.value !== undefined ? { [name]: copy.value } : {}

const codeOf = (code: unknown): ErrorCode =>
  (ERROR_CODES as readonly unknown[]).includes(code) ? (code as ErrorCode) : 'unknown'

const cut = (text: string): string =>
  text.length <= MAX_TEXT_CHARACTERS ? text : `${text.slice(0, MAX_TEXT_CHARACTERS)}... (cut)`
