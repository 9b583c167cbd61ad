/**
 * `{"$secret": "api-token", "prefix": "Bearer ", "suffix": "", "mask": true}`: a text with the value of a secret, which exists
 * only while a request is made. What is kept and shown is this object. Pure.
 */
import { MAX_SECRET_AFFIX_CHARACTERS } from '../contract/secrets.ts'
import type { JsonObject } from '../text/json.ts'
import { isSecretName } from './secrets.ts'

export interface SecretText {
  readonly name: string
  readonly prefix: string
  readonly suffix: string
  /** Whether the value is `***` in what comes back. */
  readonly isMasked: boolean
}

/** Parses an object with `$secret` and no unknown fields. Returns the fault if it is invalid. */
export function secretTextIn(object: Readonly<JsonObject>): SecretText | string {
  const { $secret: name, prefix = '', suffix = '', mask = true } = object
  if (typeof name !== 'string' || !isSecretName(name))
    return '$secret: expected the name of a secret (1 to 128 letters, digits, "-", "_" and ".")'
  for (const [field, text] of Object.entries({ prefix, suffix })) {
    if (typeof text !== 'string') return `${field}: expected string`
    if (text.length > MAX_SECRET_AFFIX_CHARACTERS)
      return `${field}: expected at most ${MAX_SECRET_AFFIX_CHARACTERS} characters, got ${text.length}`
  }
  if (typeof mask !== 'boolean') return 'mask: expected boolean'
  return { name, prefix: prefix as string, suffix: suffix as string, isMasked: mask }
}
