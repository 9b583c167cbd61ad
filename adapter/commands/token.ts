/** `taskmill token`: makes, lists and revokes the tokens of a tokens file. */
import { UsageError } from '../../shared/contract/errors.ts'
import { RIGHT_TEXTS, RIGHTS, type Right } from '../../shared/contract/rights.ts'
import { newToken, tokenHash } from '../../shared/http/known-tokens.ts'
import {
  EXPIRY_RULE,
  isExpiry,
  isRight,
  isTokenName,
  MAX_TOKEN_LIMIT,
  TOKEN_NAME_RULE,
  type TokenEntry,
} from '../../shared/http/token-entries.ts'
import { parseSpanMs } from '../../shared/settings/duration.ts'
import { flag, list, optionalInteger, text, texts } from '../../shared/settings/flags.ts'
import { nearestName } from '../../shared/text/nearest-name.ts'
import { type Answer, success } from '../envelope.ts'
import { lastServices } from '../own-services/record.ts'
import { editTokens, tokensIn } from '../tokens-file/edit.ts'
import { defineCommand } from './command.ts'
import { verbOf } from './verb.ts'

const VERBS = ['create', 'list', 'revoke'] as const

const SYNONYMS = {
  add: 'create',
  new: 'create',
  ls: 'list',
  show: 'list',
  rm: 'revoke',
  remove: 'revoke',
  delete: 'revoke',
}

/** Settings of `create` alone. */
const OF_CREATE = [
  'rights',
  'tenant',
  'expires',
  'types',
  'label',
  'approveOwn',
  'graphsPerMinute',
  'liveTasks',
] as const

export const token = defineCommand({
  summary: 'Make, list and revoke tokens of callers with names and rights, in the tokens file of the control service.',
  usage:
    'create NAME --rights read,submit [--tenant acme] [--expires 30d] | [list] | revoke NAME  [--tokens-file FILE]',
  settings: {
    tokensFile: text({
      variable: 'SERVICE_TOKENS_FILE',
      value: 'file',
      help: 'The file, as in --tokens-file of the control service, or of the runtime service. It reads the file again when it changes. Default: that of the services of taskmill up.',
    }),
    rights: list({
      value: 'rights',
      help: `With create: ${RIGHTS.map((right) => `${right} (${RIGHT_TEXTS[right]})`).join('; ')}.`,
    }),
    tenant: text({
      value: 'tenant',
      help: 'With create: whose token it is. It sees and touches only what tokens of this tenant submitted. Default: nobody in particular, and everything.',
    }),
    expires: text({
      value: 'time',
      help: 'With create: a duration from now, such as 30d, or a time in UTC, such as 2027-01-31T00:00:00Z. From then on the token is refused. Default: never.',
    }),
    types: list({ value: 'types', help: 'With create: the only types of tasks that it may submit.' }),
    label: texts({ value: 'key=value', help: 'With create: a label that each graph that it submits needs.' }),
    approveOwn: flag({ help: 'With create: it may approve and reject in graphs that it submitted itself.' }),
    graphsPerMinute: optionalInteger({
      value: 'number',
      min: 1,
      max: MAX_TOKEN_LIMIT,
      help: 'With create: graphs that it may submit in a minute.',
    }),
    liveTasks: optionalInteger({
      value: 'number',
      min: 1,
      max: MAX_TOKEN_LIMIT,
      help: 'With create: tasks of its graphs that have not ended.',
    }),
  },
  maxArguments: 2,
  async run({ values, positionals, given, env }): Promise<Answer> {
    const { verb, name } = askedFor(positionals)
    const file = values.tokensFile || lastServices(env)?.tokens_file || ''
    if (file === '') throw new UsageError('name the file with --tokens-file (or SERVICE_TOKENS_FILE)')
    const stray = OF_CREATE.find((setting) => given.has(setting))
    if (verb !== 'create' && stray !== undefined)
      throw new UsageError(`--${stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is for token create`)
    if (verb === 'list') return success({ file, tokens: tokensIn(file).map(shown) })
    if (verb === 'revoke') {
      await editTokens(file, (entries) => without(entries, name, file))
      return success({ file, name, revoked: true })
    }
    const value = newToken()
    const entry = newEntry(name, tokenHash(value), values)
    await editTokens(file, (entries) => {
      if (entries.some((other) => other.name === name))
        throw new Error(`${file} has a token ${name} already: revoke it first, or choose another name`)
      return [...entries, entry]
    })
    return success({ ...shown(entry), file, token: value, note: 'The token is shown only now. The file has its hash.' })
  },
})

function askedFor([given = 'list', name, ...rest]: readonly string[]): { verb: (typeof VERBS)[number]; name: string } {
  const verb = verbOf('token', given, VERBS, SYNONYMS)
  if (verb !== 'list' && name === undefined) throw new UsageError(`token ${verb} needs NAME (see token --help)`)
  const unexpected = verb === 'list' ? name : rest[0]
  if (unexpected !== undefined) throw new UsageError(`unexpected argument "${unexpected}" for token ${verb}`)
  if (name !== undefined && verb === 'create' && !isTokenName(name))
    throw new UsageError(`invalid name ${JSON.stringify(name)}: expected ${TOKEN_NAME_RULE}`)
  return { verb, name: name ?? '' }
}

/** Without the hash. */
const shown = ({ hash: _, ...entry }: TokenEntry) => ({
  ...entry,
  ...(entry.expires !== undefined && { expired: Date.parse(entry.expires) <= Date.now() }),
})

function without(entries: readonly TokenEntry[], name: string, file: string): readonly TokenEntry[] {
  const left = entries.filter((entry) => entry.name !== name)
  if (left.length < entries.length) return left
  const nearest = nearestName(
    name,
    entries.map((entry) => entry.name),
  )
  throw new Error(`${file} has no token ${name}${nearest === undefined ? '' : ` (did you mean ${nearest}?)`}`)
}

interface Wish {
  readonly rights: readonly string[]
  readonly tenant: string
  readonly expires: string
  readonly types: readonly string[]
  readonly label: readonly string[]
  readonly approveOwn: boolean
  readonly graphsPerMinute: number | undefined
  readonly liveTasks: number | undefined
}

function newEntry(name: string, hash: string, wish: Wish): TokenEntry {
  const { tenant, types, label, approveOwn, graphsPerMinute, liveTasks } = wish
  const expires = expiryOf(wish.expires)
  if (tenant !== '' && !isTokenName(tenant))
    throw new UsageError(`invalid value ${JSON.stringify(tenant)} for --tenant: expected ${TOKEN_NAME_RULE}`)
  return {
    ...{ name, hash, rights: rightsOf(wish.rights) },
    ...(tenant !== '' && { tenant }),
    ...(expires !== undefined && { expires }),
    ...(approveOwn && { approve_own: true }),
    ...(types.length > 0 && { types }),
    ...(label.length > 0 && { labels: labelsOf(label) }),
    ...(graphsPerMinute !== undefined && { graphs_per_minute: graphsPerMinute }),
    ...(liveTasks !== undefined && { live_tasks: liveTasks }),
  }
}

function rightsOf(given: readonly string[]): readonly Right[] {
  if (given.length === 0) throw new UsageError(`token create needs --rights, of ${RIGHTS.join(', ')}`)
  return [...new Set(given)].map((right) => {
    if (isRight(right)) return right
    const nearest = nearestName(right, RIGHTS)
    const remedy = nearest === undefined ? `there are: ${RIGHTS.join(', ')}` : `did you mean ${nearest}?`
    throw new UsageError(`unknown right ${JSON.stringify(right)} (${remedy})`)
  })
}

function expiryOf(given: string): string | undefined {
  if (given === '') return undefined
  const ms = parseSpanMs(given)
  const time = ms === null ? given : new Date(Date.now() + ms).toISOString()
  if (isExpiry(time)) return time
  throw new UsageError(`invalid value "${given}" for --expires: expected a duration, such as 30d, or ${EXPIRY_RULE}`)
}

function labelsOf(given: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((label) => {
      const [, key, value] = /^([^=]+)=(.+)$/s.exec(label) ?? []
      if (key === undefined) throw new UsageError(`invalid value "${label}" for --label: expected key=value`)
      return [key, value!]
    }),
  )
}
