/** Lists, sets and removes secrets of services: files that `taskmill secrets` keeps. No value is ever printed. */
import { readdirSync, statSync, unlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemCodeOf, UsageError } from '../../shared/contract/errors.ts'
import { replaceFileNow, syncDirectoryNow } from '../../shared/files/atomic-file.ts'
import { fileFault, MAX_SECRET_BYTES, SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { isSecretName, SECRET_NAME_RULE } from '../../shared/request/secrets.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { makeOwnPaths, ownPaths, ownServices } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'

/** Follows the name of a secret in that of a file which is not whole yet. No name of a secret has it, so no task gets the file. */
const ASIDE = '~'

export type SecretsVerb = 'list' | 'set' | 'remove'

interface SecretsCall {
  readonly verb: SecretsVerb
  /** The arguments after the verb. */
  readonly rest: readonly string[]
  /** `--secrets-dir`; empty if it is not given. */
  readonly secretsDir: string
  readonly env: Environment
}

export async function editSecrets({ verb, rest, secretsDir, env }: SecretsCall): Promise<Answer> {
  const name = nameIn(verb, rest)
  const { path, warnings } = placeOf(secretsDir, env)
  const answer = (data: object): Answer => ({
    ...{ data: { secrets_dir: path, ...data }, exitCode: EXIT.success, warnings },
  })
  const present = new SecretsDirectory(path).names()
  if (verb === 'list') return answer({ secrets: [...present].toSorted().flatMap((each) => shown(path, each)) })
  if (verb === 'remove') {
    remove(path, name, present)
    return answer({ name, removed: true })
  }
  const value = await givenValue(name)
  if (secretsDir === '') makeOwnPaths(env)
  refuseFaulty(path)
  replaceFileNow(join(path, name), value, join(path, `${name}${ASIDE}${process.pid}`))
  return answer({ name, bytes: value.length, replaced: present.has(name) })
}

/** The name for `verb`; empty for `list`. No error repeats an argument: it may be a value. */
function nameIn(verb: SecretsVerb, [name = '', ...rest]: readonly string[]): string {
  if (verb === 'list' ? name !== '' : rest.length > 0) {
    const remedy = verb === 'set' ? ': the value comes from standard input, or from a prompt' : ''
    throw new UsageError(`secrets ${verb} has too many arguments${remedy}`)
  }
  if (verb === 'list') return ''
  if (name === '') throw new UsageError(`secrets ${verb} needs NAME (see secrets --help)`)
  if (!isSecretName(name)) throw new UsageError(`invalid NAME: ${SECRET_NAME_RULE}`)
  return name
}

function placeOf(named: string, env: Environment): { readonly path: string; readonly warnings: readonly string[] } {
  if (named !== '') return { path: resolve(named), warnings: [] }
  const services = ownServices(env)
  const path = services?.secrets_dir ?? ownPaths(env).secrets
  if (services === undefined || services.secrets_dir !== undefined) return { path, warnings: [] }
  return { path, warnings: ['the services do not use this directory yet: taskmill down, then taskmill up'] }
}

function refuseFaulty(path: string): void {
  const fault = new SecretsDirectory(path).fault()
  if (fault !== undefined) throw new Error(`--secrets-dir ${path} ${fault}`)
}

/** What people may know of a secret; nothing if its file is gone. */
function shown(path: string, name: string): object[] {
  const status = statSync(join(path, name), { bigint: true, throwIfNoEntry: false })
  if (status === undefined) return []
  const fault = fileFault(status)
  const changed_at = new Date(Number(status.mtimeMs)).toISOString()
  return [{ name, bytes: Number(status.size), changed_at, ...(fault !== undefined && { fault }) }]
}

function remove(path: string, name: string, present: ReadonlySet<string>): void {
  try {
    unlinkSync(join(path, name))
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error
    const nearest = nearestName(name, present)
    throw new Error(`${path} has no secret ${name}${nearest === undefined ? '' : ` (did you mean ${nearest}?)`}`)
  }
  // What a killed client left has the value, or that before it.
  for (const file of readdirSync(path)) if (file.startsWith(`${name}${ASIDE}`)) unlinkSync(join(path, file))
  syncDirectoryNow(path)
}

async function givenValue(name: string): Promise<Uint8Array> {
  const value = process.stdin.isTTY
    ? Buffer.from(await typed(name))
    : ofOneLine(await readInput('-', 'the value of the secret', MAX_SECRET_BYTES))
  if (value.length === 0) throw new Error('the value of the secret is empty')
  return value
}

async function typed(name: string): Promise<string> {
  const { hiddenLine } = await import('./hidden-line.ts')
  return hiddenLine(`Value of ${name} (not shown): `)
}

/** One line without its end, which is no part of a token. Several lines as they are: programs want the last line end of a key. */
function ofOneLine(value: Uint8Array): Uint8Array {
  const end = value.indexOf(0x0a)
  if (end === -1 || end < value.length - 1) return value
  return value.subarray(0, value[end - 1] === 0x0d ? end - 1 : end)
}
