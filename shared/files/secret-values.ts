/** The values of the secrets of a task, when it starts. */
import { MAX_STRING_BYTES, variableBytes } from '../request/execution.ts'
import { isMasked, type SecretNames, secretFileOf, secretNameOf } from '../request/secrets.ts'
import { shortened } from '../request/text.ts'
import { MaskForms } from '../text/mask-forms.ts'
import type { SecretAsker } from './secret-rules.ts'
import { SecretFault, type SecretsDirectory } from './secrets-directory.ts'

/** Bytes of all secrets of a task together. They are read, and written, at once. */
export const MAX_TASK_SECRETS_BYTES = 4 * 1024 * 1024

/** A value that goes into a file. */
export interface SecretFile {
  readonly variable: string
  /** The names of the directories and of the file below the workspace. */
  readonly names: readonly string[]
  readonly value: Buffer
}

export interface SecretValues {
  readonly variables: Readonly<Record<string, string>>
  readonly files: readonly SecretFile[]
  /** The forms of the values to mask in what the task prints. */
  readonly masks: readonly Buffer[]
}

/** Reads what `names` of the task `asker` asks for. Throws `SecretFault`. */
export function secretValues(directory: SecretsDirectory, names: SecretNames, asker: SecretAsker): SecretValues {
  const variables: [string, string][] = []
  const files: SecretFile[] = []
  const masks = new MaskForms()
  let bytes = 0
  for (const [variable, use] of Object.entries(names)) {
    try {
      const name = secretNameOf(use)
      const value = directory.read(name, asker)
      bytes += value.length
      if (bytes > MAX_TASK_SECRETS_BYTES) {
        throw new SecretFault(`the secrets of a task have at most ${MAX_TASK_SECRETS_BYTES} bytes together`)
      }
      const file = secretFileOf(use)
      if (file === undefined) variables.push([variable, textFor(variable, name, value)])
      else files.push({ variable, names: file, value })
      const fault = isMasked(use) ? masks.add(value) : undefined
      if (fault !== undefined) throw new SecretFault(`the secret ${name} ${fault}`)
    } catch (error) {
      if (!(error instanceof SecretFault)) throw error
      throw new SecretFault(`secrets.${shortened(variable)}: ${error.message}`)
    }
  }
  return { variables: Object.fromEntries(variables), files, masks: masks.all }
}

/** The value as text. A file of one line usually ends with a line break, which is no part of the secret. Throws `SecretFault`. */
export const secretText = (name: string, value: Buffer): string => decoded(name, value).replace(/\r?\n$/, '')

/** The text of a variable. */
function textFor(variable: string, name: string, value: Buffer): string {
  const text = secretText(name, value)
  if (text.includes('\0')) throw new SecretFault(`the secret ${name} has a NUL character, which no variable can hold`)
  const bytes = variableBytes(variable, text)
  if (bytes <= MAX_STRING_BYTES) return text
  throw new SecretFault(
    `has ${bytes} bytes with its name and a program takes at most ${MAX_STRING_BYTES} in one string`,
  )
}

function decoded(name: string, value: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
  } catch {
    throw new SecretFault(`the secret ${name} is no UTF-8 text, and a variable holds nothing else`)
  }
}
