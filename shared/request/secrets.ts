/**
 * Secrets of a task: values that a service has, and that the task gets when it starts. A request holds only names. Each
 * value goes into a variable, or into a file of the workspace. Pure.
 */
import { MAX_SECRETS } from '../contract/secrets.ts'
import { isObject } from '../text/json.ts'
import { requestFault } from './fault.ts'
import { TASK_MARK } from './task-mark.ts'
import { checkText, isBlank, shortened } from './text.ts'

/** Bytes of the path of a file with a secret, and of one name in it. */
export const MAX_SECRET_FILE_BYTES = 1024
const MAX_NAME_BYTES = 255

/** Names in that path. */
export const MAX_SECRET_FILE_NAMES = 32

/** The name of a secret; or that, the path of a file in the workspace that gets the value, and whether output is masked. */
export type SecretUse = string | { readonly name: string; readonly file?: string; readonly mask?: boolean }

/** By variable. With a file, the variable has the path of the file. */
export type SecretNames = Readonly<Record<string, SecretUse>>

export const SECRET_NAME_RULE = 'the name of a secret has 1 to 128 letters, digits, "-", "_" and "."'

/** A name is that of a file. */
export const isSecretName = (name: string): boolean => /^[A-Za-z0-9._-]{1,128}$/.test(name) && !/^\.\.?$/.test(name)

/** Details of an error about a secret that a task cannot have: another attempt cannot have it, either. */
export const OF_SECRETS = { field: 'secrets' } as const

export const isOfSecrets = (details: unknown): boolean => isObject(details) && details.field === OF_SECRETS.field

/** Details of an error about a secret that a command did not print: another attempt may have it. */
export type SecretCommandDetails = {
  readonly step: 'secret_command'
  readonly secret: string
  /** Absent if the command was ended, or printed no secret. */
  readonly exit_code?: number
}

export const isOfSecretCommand = (details: unknown): boolean => isObject(details) && details.step === 'secret_command'

/** The name of the secret. */
export const secretNameOf = (use: SecretUse): string => (typeof use === 'string' ? use : use.name)

/** Whether the value is masked in what the task prints. */
export const isMasked = (use: SecretUse): boolean => typeof use === 'string' || use.mask !== false

/**
 * The names of the secrets, each once, in order, and whether they are masked: others may be in the output. Also of secrets
 * that were not checked.
 */
export const sortedNames = (secrets: SecretNames | null | undefined): string[] =>
  [...new Set(Object.values(secrets ?? {}).map((use) => nameInSet(use ?? '')))].toSorted()

const nameInSet = (use: SecretUse): string => `${JSON.stringify(secretNameOf(use))}${isMasked(use) ? '' : ' as it is'}`

/** The names of the directories and of the file below the workspace; undefined for a secret without a file. */
export const secretFileOf = (use: SecretUse): readonly string[] | undefined =>
  typeof use === 'string' || use.file === undefined ? undefined : namesIn(use.file)

/** The names in a path: `./a//b` has two. */
export const namesIn = (path: string): string[] => path.split('/').filter((name) => name !== '' && name !== '.')

/** The facts that the rules of secrets depend on. */
export interface SecretSurroundings {
  /** The other variables of the task. */
  readonly env: Readonly<Record<string, unknown>>
  /** The paths of these fields, for errors. */
  readonly envAt?: string
  /** The working directory below the workspace, which is made before the files. */
  readonly workspaceSubdir?: string | undefined
  /** Paths of files and directories that are copied into the workspace before. A secret may go into such a directory. */
  readonly inputPaths?: readonly string[]
}

/** Throws `RequestFault` with the first fault. */
export function validSecrets(given: SecretNames, { env, envAt = 'execution.env', ...more }: SecretSurroundings) {
  const entries = Object.entries(given)
  if (entries.length > MAX_SECRETS) {
    throw requestFault(`secrets has ${entries.length} entries (a task has at most ${MAX_SECRETS})`)
  }
  const files = new SecretFiles(more.workspaceSubdir, more.inputPaths)
  for (const [variable, use] of entries) {
    if (isBlank(variable) || variable.includes('=')) {
      throw requestFault('secrets keys must be non-empty and cannot contain "="')
    }
    const path = `secrets.${shortened(variable)}`
    checkText(`the name of ${path}`, variable)
    if (variable === TASK_MARK) throw requestFault(`${path} marks the processes of a task and cannot be replaced`)
    if (Object.hasOwn(env, variable)) throw requestFault(`${path} is a variable of ${envAt}, too`)
    const name = secretNameOf(use)
    if (!isSecretName(name)) {
      throw requestFault(`${path}: ${SECRET_NAME_RULE}, got ${shortened(name)}`)
    }
    if (typeof use !== 'string' && use.file !== undefined) files.add(`${path}.file`, use.file)
  }
  return given
}

/** The files of one task, none of which may be in the place of another file or directory. */
class SecretFiles {
  /** Values by their paths. */
  readonly #files = new Map<string, string>()
  readonly #directories = new Map<string, string>()

  constructor(workspaceSubdir = '', inputPaths: readonly string[] = []) {
    this.#addPath(workspaceSubdir, 'sandbox.workspace_subdir')
    for (const path of inputPaths) this.#addPath(path, `inputs.${shortened(path)}`)
  }

  add(at: string, file: string): void {
    const names = checkedNames(at, file)
    const path = names.join('/')
    const other = this.#files.get(path) ?? this.#directories.get(path)
    if (other !== undefined) throw requestFault(`${at} is in the place of ${other}: ${shortened(path)}`)
    this.#addDirectories(names.slice(0, -1), at)
    this.#files.set(path, at)
  }

  /** A path of another field, which is checked later: one that is too long is refused then. */
  #addPath(path: string, at: string): void {
    if (path.length <= MAX_SECRET_FILE_BYTES) this.#addDirectories(namesIn(path), at)
  }

  #addDirectories(names: readonly string[], at: string): void {
    for (let i = 1; i <= names.length; i++) {
      const path = names.slice(0, i).join('/')
      const other = this.#files.get(path)
      if (other !== undefined)
        throw requestFault(`${at} needs a directory in the place of ${other}: ${shortened(path)}`)
      this.#directories.set(path, at)
    }
  }
}

/** The names in the path of a file below a workspace. Throws `RequestFault` for one that leads elsewhere, or is too long. */
export function checkedNames(at: string, file: string): readonly string[] {
  checkText(at, file)
  if (file.startsWith('/')) throw requestFault(`${at} must be relative to the workspace`)
  const names = namesIn(file)
  if (names.includes('..')) throw requestFault(`${at} cannot contain parent traversal`)
  if (names.length === 0 || file.endsWith('/')) throw requestFault(`${at} must name a file`)
  const bytes = Buffer.byteLength(file)
  if (bytes > MAX_SECRET_FILE_BYTES) throw requestFault(`${at} has ${bytes} bytes (at most ${MAX_SECRET_FILE_BYTES})`)
  if (names.length > MAX_SECRET_FILE_NAMES) {
    throw requestFault(`${at} has ${names.length} names (at most ${MAX_SECRET_FILE_NAMES})`)
  }
  const long = names.find((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)
  if (long !== undefined) {
    throw requestFault(`${at}: ${shortened(long)} is longer than the ${MAX_NAME_BYTES} bytes of a file name`)
  }
  return names
}
