/** The schema of an object whose values are strings. */
import type { SchemaOptions } from '@sinclair/typebox'
import { Type } from './schema-builder.ts'

/** Matches every name. The default of `Type.Record`, `^(.*)$`, matches no line break, so values behind such a name go unchecked. */
export const ANY_NAME = '^[^]*$'

export const stringMap = (options: SchemaOptions = {}) =>
  Type.Record(Type.String({ pattern: ANY_NAME }), Type.String(), options)
