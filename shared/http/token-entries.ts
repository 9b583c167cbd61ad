/**
 * The entries of a tokens file: who has which rights. Pure.
 *
 * A tokens file is `{"tokens": [{"name": "ci", "hash": "sha256:...", "rights": ["read", "submit"]}]}`, or says the same in TOML:
 * a table `[[tokens]]` for each. Beside the tokens it may say where tasks of a tenant connect to, other than public addresses:
 * `"tenants": [{"name": "acme", "reach": ["10.1.2.0/24", "intranet.example:8443"]}]`. It holds hashes, never tokens: a token is 256 random bits, so its SHA-256 cannot be guessed.
 */
import { RIGHTS, type Right } from '../contract/rights.ts'
import { parseReach } from '../egress/rule.ts'
import { didYouMean } from '../request/unknown-names.ts'
import { isObject, jsonTypeOf } from '../text/json.ts'
import { nearestName } from '../text/nearest-name.ts'

/** Bytes of a tokens file. */
export const MAX_TOKENS_FILE_BYTES = 1024 * 1024

export const MAX_TOKENS = 1_000

export const MAX_TOKEN_NAME_CHARACTERS = 64

/** Task types, or labels, of one token. */
export const MAX_TOKEN_RULES = 32

export const MAX_TENANTS = 1_000

/** Hosts of one tenant. */
export const MAX_TENANT_REACH = 64

/** What a token allows. Absent limits do not limit. */
export interface Grant {
  /** Names the token in records and logs. */
  readonly name: string
  readonly rights: readonly Right[]
  /** Whose token it is: it sees and touches only what tokens of the same tenant submitted. Absent: everything. */
  readonly tenant?: string
  /** Whether it may approve and reject in graphs that it submitted itself. */
  readonly approve_own?: boolean
  /** Types of the tasks that it may submit. */
  readonly types?: readonly string[]
  /** Labels that each graph that it submits has to have. */
  readonly labels?: Readonly<Record<string, string>>
  /** Graphs that it may submit in a minute, to each replica. */
  readonly graphs_per_minute?: number
  /** Tasks of its graphs that have not ended, in each replica. */
  readonly live_tasks?: number
}

export interface TokenEntry extends Grant {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly hash: string
  /** A time in UTC, as in 2027-01-31T00:00:00Z. From then on the token is refused. */
  readonly expires?: string
}

export interface TenantEntry {
  readonly name: string
  /** Rules (`parseReach`). */
  readonly reach: readonly string[]
}

export interface TokensFile {
  readonly tokens: readonly TokenEntry[]
  readonly tenants: readonly TenantEntry[]
}

const NAME = /^[A-Za-z0-9][\w.@-]*$/
const HASH = /^sha256:[0-9a-f]{64}$/
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z$/

/** The largest limit of graphs or tasks. */
export const MAX_TOKEN_LIMIT = 100_000_000

type Check = readonly [accepts: (value: unknown) => boolean, expected: string]

const isText = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TOKENS_FILE_BYTES

const isCount = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_TOKEN_LIMIT

const isListOf = (value: unknown, accepts: (each: unknown) => boolean, most: number): boolean =>
  Array.isArray(value) && value.length > 0 && value.length <= most && value.every(accepts)

export const isTokenName = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_TOKEN_NAME_CHARACTERS && NAME.test(value) && !isRight(value)

export const TOKEN_NAME_RULE = `1 to ${MAX_TOKEN_NAME_CHARACTERS} letters, digits, ".", "_", "-" and "@", the first one a letter or a digit, and no right`

export const isExpiry = (value: unknown): value is string =>
  typeof value === 'string' && TIME.test(value) && !Number.isNaN(Date.parse(value))

export const EXPIRY_RULE = 'a time in UTC, such as 2027-01-31T00:00:00Z'

export const isRight = (value: unknown): value is Right => RIGHTS.some((right) => right === value)

const GRANT_CHECKS: Readonly<Record<keyof Grant, Check>> = {
  name: [isTokenName, TOKEN_NAME_RULE],
  rights: [(value) => isListOf(value, isRight, RIGHTS.length), `a list of ${RIGHTS.join(', ')}`],
  tenant: [isTokenName, TOKEN_NAME_RULE],
  approve_own: [(value) => typeof value === 'boolean', 'true or false'],
  types: [(value) => isListOf(value, isText, MAX_TOKEN_RULES), `1 to ${MAX_TOKEN_RULES} types of tasks`],
  labels: [
    (value) => isObject(value) && isListOf(Object.values(value), isText, MAX_TOKEN_RULES),
    `an object of 1 to ${MAX_TOKEN_RULES} labels with texts`,
  ],
  graphs_per_minute: [isCount, `a whole number from 1 to ${MAX_TOKEN_LIMIT}`],
  live_tasks: [isCount, `a whole number from 1 to ${MAX_TOKEN_LIMIT}`],
}

const ENTRY_CHECKS: Readonly<Record<keyof TokenEntry, Check>> = {
  ...GRANT_CHECKS,
  hash: [(value) => typeof value === 'string' && HASH.test(value), 'sha256: and 64 hexadecimal digits in lower case'],
  expires: [isExpiry, EXPIRY_RULE],
}

const TENANT_CHECKS: Readonly<Record<keyof TenantEntry, Check>> = {
  name: [isTokenName, TOKEN_NAME_RULE],
  reach: [
    (value) => isListOf(value, isReach, MAX_TENANT_REACH),
    `1 to ${MAX_TENANT_REACH} networks, addresses or names, such as 10.1.2.0/24 or intranet.example:8443`,
  ],
}

function isReach(value: unknown): boolean {
  try {
    parseReach(String(value))
    return typeof value === 'string'
  } catch {
    return false
  }
}

/** Why a text is no tokens file. The message names the field, and repeats no value of a hash. */
export class TokensFault extends Error {
  override name = 'TokensFault'
}

export type TokensForm = 'json' | 'toml'

/** What the file with this name is. */
export const tokensFormOf = (path: string): TokensForm => (path.endsWith('.toml') ? 'toml' : 'json')

export interface TokenOptions {
  /** Whether an entry says rights only, as for a service that knows no graphs. */
  readonly hasOnlyRights?: boolean
}

/** Throws `TokensFault`. */
export function tokensFileIn(
  text: string,
  form: TokensForm = 'json',
  { hasOnlyRights = false }: TokenOptions = {},
): TokensFile {
  let file: unknown
  try {
    file = form === 'toml' ? Bun.TOML.parse(text) : JSON.parse(text)
  } catch {
    throw new TokensFault(`it is not ${form.toUpperCase()}`)
  }
  const { tokens: _, tenants: given = [], ...others } = isObject(file) ? file : {}
  if (!isObject(file) || !Array.isArray(file.tokens) || !Array.isArray(given) || Object.keys(others).length > 0)
    throw new TokensFault('expected an object with the list tokens, and nothing else but the list tenants')
  if (file.tokens.length > MAX_TOKENS)
    throw new TokensFault(`it has ${file.tokens.length} tokens (at most ${MAX_TOKENS})`)
  const entries = file.tokens.map((entry, i) =>
    checked<TokenEntry>(entry, `tokens[${i}]`, ENTRY_CHECKS, ['name', 'hash', 'rights']),
  )
  if (hasOnlyRights) for (const [i, entry] of entries.entries()) refuseRulesOfGraphs(entry, `tokens[${i}]`)
  if (hasOnlyRights && given.length > 0) throw new TokensFault(`tenants: ${ONLY_CONTROL}`)
  if (given.length > MAX_TENANTS) throw new TokensFault(`it has ${given.length} tenants (at most ${MAX_TENANTS})`)
  const tenants = given.map((entry, i) =>
    checked<TenantEntry>(entry, `tenants[${i}]`, TENANT_CHECKS, ['name', 'reach']),
  )
  refuseRepeated(entries, 'name', (i) => `tokens[${i}].name: another token has it`)
  refuseRepeated(entries, 'hash', (i) => `tokens[${i}].hash: another token has it`)
  refuseRepeated(tenants, 'name', (i) => `tenants[${i}].name: it stands twice`)
  return { tokens: entries, tenants }
}

/** The tokens alone. Throws `TokensFault`. */
export const tokenEntriesIn = (text: string, form?: TokensForm, options?: TokenOptions): readonly TokenEntry[] =>
  tokensFileIn(text, form, options).tokens

/** The grant in a text. Throws `TokensFault`. */
export function grantIn(text: string): Grant {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new TokensFault('it is not JSON')
  }
  return checked<Grant>(given, 'the grant', GRANT_CHECKS, ['name', 'rights'])
}

/** The grant of an entry, as a text for `grantIn`. */
export const grantText = ({
  name,
  rights,
  tenant,
  approve_own,
  types,
  labels,
  graphs_per_minute,
  live_tasks,
}: Grant): string => JSON.stringify({ name, rights, tenant, approve_own, types, labels, graphs_per_minute, live_tasks })

export const tokensText = (tokens: readonly TokenEntry[], tenants: readonly TenantEntry[] = []): string =>
  `${JSON.stringify({ tokens, ...(tenants.length > 0 && { tenants }) }, null, 2)}\n`

function checked<T>(
  given: unknown,
  where: string,
  checks: Readonly<Record<string, Check>>,
  required: readonly string[],
): T {
  if (!isObject(given)) throw new TokensFault(`${where}: expected object, got ${jsonTypeOf(given)}`)
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (check === undefined) {
      throw new TokensFault(
        `${where}: unknown field ${JSON.stringify(name)}${didYouMean(nearestName(name, Object.keys(checks)))}`,
      )
    }
    if (!check[0](value)) throw new TokensFault(`${where}.${name}: expected ${check[1]}`)
  }
  const missing = required.find((name) => given[name] === undefined)
  if (missing !== undefined) throw new TokensFault(`${where}.${missing} is required`)
  return given as T
}

const OF_RIGHTS = ['name', 'rights', 'hash', 'expires']

const ONLY_CONTROL = 'only the control service knows it (remove it)'

/** A limit that is not kept would be worse than none. */
function refuseRulesOfGraphs(entry: TokenEntry, where: string): void {
  const field = Object.keys(entry).find((name) => !OF_RIGHTS.includes(name))
  if (field !== undefined) throw new TokensFault(`${where}.${field}: ${ONLY_CONTROL}`)
}

function refuseRepeated<F extends string>(
  entries: readonly Readonly<Record<F, string>>[],
  field: F,
  text: (i: number) => string,
): void {
  const seen = new Set<string>()
  for (const [i, entry] of entries.entries()) {
    if (seen.has(entry[field])) throw new TokensFault(text(i))
    seen.add(entry[field])
  }
}
