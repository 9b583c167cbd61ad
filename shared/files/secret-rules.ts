/**
 * Who may use which secrets: a file of the operator in TOML (`--secrets-rules`), a table for each secret. A secret without a
 * table goes to the process of every task that takes secrets, and nowhere else.
 *
 *   [registry-token]
 *   tenants = ["team-a"]     # tasks of these tenants, and no task without a tenant; default: every task but `tenantOnly` ones
 *   types = ["runtime"]      # these types: shell, cli-skills, runtime, http, mcp, callback; default: all
 *   hosts = ["api.example.com"]  # where http and mcp tasks and callbacks may send it (shared/egress/secret-host.ts); default: nowhere
 *
 * The file is looked at whenever a secret is asked for, and read again if it has changed. One that cannot be used changes
 * nothing: the rules before it stay in force, until the operator has seen the fault in the log or in the health of the service.
 */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import { parseSecretHost, type SecretHost, type SecretTarget, secretTargetText } from '../egress/secret-host.ts'
import type { Log } from '../logs/log.ts'
import { isSecretName } from '../request/secrets.ts'
import { shortened } from '../request/text.ts'
import { isObject } from '../text/json.ts'

/** Bytes of the file. */
export const MAX_SECRET_RULES_BYTES = 1024 * 1024

/** What an asker of a token's tenant says of itself. */
export const ofTokenTenant = (tenant: string | undefined): Pick<SecretAsker, 'tenant' | 'tenantOnly'> =>
  tenant === undefined ? {} : { tenant, tenantOnly: true }

/** The task that asks for a secret. */
export interface SecretAsker {
  /** `shell`, `cli-skills`, `runtime`, `http`, `mcp`, `callback`, or the type of an executor of the operator. */
  readonly type: string
  /** On whose behalf it runs. */
  readonly tenant?: string | undefined
  /** Whether it gets only secrets whose rules name its tenant. */
  readonly tenantOnly?: boolean | undefined
  /** What the secret is sent to, in other words if there are several; empty if that is not known yet. Undefined: to a process. */
  readonly to?: readonly SecretTarget[]
}

interface SecretRule {
  readonly tenants?: readonly string[] | undefined
  readonly types?: readonly string[] | undefined
  readonly hosts?: readonly SecretHost[] | undefined
}

type Rules = ReadonlyMap<string, SecretRule>

/** Milliseconds after which a file system certainly gives another change another time. */
const SETTLED_MS = 1_000

/** Mode bits with which others can change the file. */
const WRITABLE_BY_OTHERS = 0o022

export class SecretRules {
  readonly #path: string
  readonly #log: Pick<Log, 'info' | 'error'>
  #rules: Rules
  /** Which file was read last, and its text; undefined if it could change unnoticed, or was not read. */
  #seen: string | undefined
  #text: string | undefined
  #fault: string | undefined

  /** Throws `UsageError` for a file that cannot be used. */
  constructor(path: string, log: Pick<Log, 'info' | 'error'>) {
    this.#path = path
    this.#log = log
    try {
      const read = readRules(path)
      this.#rules = parsedRules(read.text)
      this.#text = read.text
      this.#seen = read.identity
    } catch (error) {
      throw new UsageError(`--secrets-rules ${path} ${messageOf(error)}`)
    }
  }

  /** That the rules in force are not those of the file; undefined if they are. Everybody may read it, so it names nothing. */
  fault(): string | undefined {
    this.#look()
    return this.#fault && 'the file of --secrets-rules cannot be used: the rules before it stay in force (see the log)'
  }

  /** Why a task may not have the secret `name`, as a text that follows `secrets.X: `; undefined if it may. */
  whyDenied(name: string, asker: SecretAsker): string | undefined {
    this.#look()
    const { tenants, types, hosts } = this.#rules.get(name) ?? {}
    const { type, tenant, to } = asker
    // First: to others of a tenant, a secret is as one that is not there.
    if (tenants === undefined ? asker.tenantOnly : tenant === undefined || !tenants.includes(tenant))
      return whyOfOthers(name, asker)
    if (types?.includes(type) === false) return `the secret ${name} is not for tasks of type ${type} ${REMEDY}`
    if (to === undefined) return undefined
    if (hosts === undefined) return whyForProcesses(name, `give its table [${name}] in ${this.#path} hosts`)
    if (to.length === 0 || to.some((target) => hosts.some((covers) => covers(target)))) return undefined
    return `the secret ${name} is not for ${secretTargetText(to[0]!)} (add that to hosts of [${name}] in ${this.#path})`
  }

  #look(): void {
    try {
      if (this.#seen !== undefined && this.#seen === identityOf(statSync(this.#path, { bigint: true }))) return
      const { text, identity } = readRules(this.#path)
      this.#seen = identity
      if (text === this.#text) {
        this.#fault = undefined
        return
      }
      this.#rules = parsedRules(text)
      this.#text = text
      this.#fault = undefined
      this.#log.info('the rules of the secrets have changed', { file: this.#path, secrets: this.#rules.size })
    } catch (error) {
      this.#tell(messageOf(error))
    }
  }

  #tell(fault: string): void {
    if (fault === this.#fault) return
    this.#fault = fault
    this.#log.error('the rules of the secrets cannot be used: those before stay in force', {
      file: this.#path,
      cause: fault,
    })
  }
}

/** Why a secret that is not for its tenant is denied to `asker`. */
export const whyOfOthers = (name: string, { tenant }: SecretAsker): string =>
  `the secret ${name} is not for ${tenant === undefined ? 'tasks without a tenant' : `tasks of tenant ${shortened(tenant)}`} ${REMEDY}`

/** Why a secret that no rule sends to a host is not sent. */
export const whyForProcesses = (name: string, remedy: string): string =>
  `the secret ${name} is for processes of tasks only (${remedy})`

const REMEDY = '(its table in --secrets-rules decides)'

/** Throws with a text that follows the path. */
function readRules(path: string): { readonly text: string; readonly identity: string | undefined } {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    throw new Error(systemCodeOf(error) === 'ENOENT' ? 'does not exist' : `cannot be read: ${messageOf(error)}`)
  }
  try {
    const status = fstatSync(fd, { bigint: true })
    if (!status.isFile()) throw new Error('is not a file')
    if (status.size > BigInt(MAX_SECRET_RULES_BYTES)) {
      throw new Error(`has ${status.size} bytes (at most ${MAX_SECRET_RULES_BYTES})`)
    }
    checkAuthor(status)
    return { text: readFileSync(fd, 'utf8'), identity: identityOf(status) }
  } finally {
    closeSync(fd)
  }
}

/** Whoever can change the file decides who gets secrets. */
function checkAuthor({ mode, uid }: BigIntStats): void {
  if ((Number(mode) & WRITABLE_BY_OTHERS) !== 0) throw new Error('can be changed by other users (chmod 644 it)')
  const own = process.geteuid?.() ?? 0
  if (uid === 0n || uid === BigInt(own)) return
  throw new Error(`belongs to user ${uid} (chown it to user ${own} of the service, or to root)`)
}

/** Undefined for a file that was changed a moment ago, and may change again without another time. */
function identityOf({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats): string | undefined {
  return Date.now() - Number(ctimeMs) < SETTLED_MS ? undefined : [dev, ino, size, mtimeNs, ctimeNs].join()
}

/** Throws with a text that follows the path. */
function parsedRules(text: string): Rules {
  let tables: unknown
  try {
    tables = Bun.TOML.parse(text)
  } catch (error) {
    throw new Error(`is no TOML: ${messageOf(error)}`)
  }
  return new Map(Object.entries(tables as object).map(([name, table]) => [name, ruleOf(name, table)]))
}

function ruleOf(name: string, table: unknown): SecretRule {
  const at = `has [${shortened(name)}]`
  if (!isSecretName(name)) throw new Error(`${at}, which is no name of a secret`)
  if (!isObject(table)) throw new Error(`${at}, which is no table`)
  const { tenants, types, hosts, ...unknown } = table
  const [other] = Object.keys(unknown)
  if (other !== undefined) {
    throw new Error(
      `${at} with the unknown key ${shortened(other)} (known: tenants, types, hosts; quote a name with dots)`,
    )
  }
  return {
    tenants: namesIn(at, 'tenants', tenants),
    types: namesIn(at, 'types', types),
    hosts: namesIn(at, 'hosts', hosts)?.map((text, i) => hostIn(`${at} with hosts[${i}]`, text)),
  }
}

function hostIn(at: string, text: string): SecretHost {
  try {
    return parseSecretHost(text)
  } catch (error) {
    throw new Error(`${at}: ${messageOf(error)}`)
  }
}

function namesIn(at: string, key: string, given: unknown): readonly string[] | undefined {
  if (given === undefined) return undefined
  if (Array.isArray(given) && given.every((name) => typeof name === 'string')) return given
  throw new Error(`${at} with ${key} that are no list of texts`)
}
