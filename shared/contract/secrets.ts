/** The schema of `secrets`, in requests of both services. */
import type { SchemaOptions } from '@sinclair/typebox'
import { Type } from './schema-builder.ts'
import { ANY_NAME } from './string-map.ts'

/** Secrets of one task. */
export const MAX_SECRETS = 64

const SecretName = Type.String({ description: 'Name of the secret.' })

/** A value in a file, or one that may be printed. */
const DescribedSecret = Type.Object(
  {
    name: SecretName,
    file: Type.Optional(
      Type.String({ description: 'Path of a file in the workspace that gets the value; without "..".' }),
    ),
    mask: Type.Optional(
      Type.Boolean({
        expected: 'boolean',
        description: 'Whether the value is *** in what the task prints. Default true.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** The parts of the value of a variable. */
export const SecretUse = Type.Union([SecretName, DescribedSecret], {
  description: 'Name of the secret, or {"name", "file", "mask"}.',
  expected: 'name of a secret (a string, no placeholder), or object with name, and file or mask',
})

export const secretMap = (options: SchemaOptions = {}) =>
  Type.Record(Type.String({ pattern: ANY_NAME }), SecretUse, { expected: 'object of names of secrets', ...options })
