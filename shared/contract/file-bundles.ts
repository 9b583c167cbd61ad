/** Files of tasks on their way to another runtime service: bundles, and the staged ones. */
import type { Static } from '@sinclair/typebox'
import { count, maybe, text } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

/** A SHA-256 in hexadecimal digits. */
export const SHA256_PATTERN = '^[0-9a-f]{64}$'
export const isSha256 = (value: string): boolean => /^[0-9a-f]{64}$/.test(value)

export const BUNDLE_TYPE = 'application/vnd.taskmill.bundle'

export const TAR_TYPE = 'application/x-tar'

/** The answer of GET /api/v1/tasks/{id}/bundle with `only`. */
export const BundleSummary = Type.Object(
  {
    bytes: count('Size of the bundle.'),
    files: count('Files in it.'),
    sha256: maybe(text('SHA-256 of the bundle. With only=digest.')),
    tenant: maybe(text('The tenant of the task. Absent if it has none.')),
  },
  { title: 'BundleSummary' },
)
export type BundleSummary = Static<typeof BundleSummary>

/** The answer of GET and PUT /api/v1/runtime/files/{sha256}. */
export const StagedFile = Type.Object(
  { sha256: text('SHA-256 of the bundle, which names it.'), bytes: count('Its size.') },
  { title: 'StagedFile' },
)
export type StagedFile = Static<typeof StagedFile>
