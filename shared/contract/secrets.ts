/** The schema of `secrets`, in requests of both services. */
import type { SchemaOptions } from '@sinclair/typebox'
import { Type } from './schema-builder.ts'
import { ANY_NAME } from './string-map.ts'

/** Secrets of one task. */
export const MAX_SECRETS = 64

/** Characters of the text before the value of a `$secret`, and after it. */
export const MAX_SECRET_AFFIX_CHARACTERS = 65_536

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

/** A text with the value of a secret, in a request that a service makes. */
export const SecretText = Type.Object(
  {
    $secret: SecretName,
    prefix: Type.Optional(
      Type.String({ maxLength: MAX_SECRET_AFFIX_CHARACTERS, description: 'What stands before the value.' }),
    ),
    suffix: Type.Optional(
      Type.String({ maxLength: MAX_SECRET_AFFIX_CHARACTERS, description: 'What stands after the value.' }),
    ),
    mask: Type.Optional(Type.Boolean({ description: 'Whether the value is *** in what comes back. Default true.' })),
  },
  { additionalProperties: false },
)

/** The fields of a placeholder for a secret. */
export const SECRET_TEXT_FIELDS: readonly string[] = Object.keys(SecretText.properties)
