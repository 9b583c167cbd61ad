/** The schema of `secrets`, in requests of both services. */
import { type SchemaOptions, Type } from '@sinclair/typebox'
import { ANY_NAME } from './string-map.ts'

/** Secrets of one task. */
export const MAX_SECRETS = 64

const SecretName = Type.String({ description: 'Name of the secret.' })

/** A value in a file. */
export const SecretInFile = Type.Object(
  {
    name: SecretName,
    file: Type.String({ description: 'Path of a file in the workspace that gets the value; without "..".' }),
  },
  { additionalProperties: false },
)

/** The parts of the value of a variable. */
export const SecretUse = Type.Union([SecretName, SecretInFile], {
  description: 'Name of the secret, or {"name", "file"}.',
  expected: 'name of a secret (a string, no placeholder), or object with name and file',
})

export const secretMap = (options: SchemaOptions = {}) =>
  Type.Record(Type.String({ pattern: ANY_NAME }), SecretUse, { expected: 'object of names of secrets', ...options })
