/**
 * The resolved input of a task with placeholders, as its record keeps it. Pure.
 *
 * The record keeps only the digest of a large input. The input itself is in a file until the task has ended.
 */

import type { Steps } from '../../shared/process/steps.ts'
import { isObject } from '../../shared/text/json.ts'
import { jsonDigest } from '../json/pieces.ts'
import { isLargeJson } from './result-file.ts'

/** The digest of a large input. */
export interface DigestOfInput {
  /** `sha256:` and the hexadecimal hash of the JSON text. */
  readonly $digest: string
  /** Bytes of the JSON text. */
  readonly length: number
}

/** The digest of an input as the record keeps it; undefined if the record keeps the input itself. */
export function* digestToKeep(input: unknown): Steps<DigestOfInput | undefined> {
  if (!isLargeJson(input)) return undefined
  const { sha256, bytes } = yield* jsonDigest(input)
  return { $digest: `sha256:${sha256}`, length: bytes }
}

/**
 * Whether the record keeps the input itself. An input that looks like a digest is resolved again, with the same result.
 */
export const isKeptWhole = (kept: unknown): boolean => kept !== undefined && !(isObject(kept) && '$digest' in kept)
