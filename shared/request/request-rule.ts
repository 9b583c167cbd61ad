/**
 * Rules of `sandbox.network.allow` about single requests: which ones pass, and which secrets the proxy adds to them. Pure.
 */
import type { RequestRule } from '../contract/runtime-request.ts'
import { NotARule, parseRule, type Rule } from '../egress/rule.ts'
import { isSecretName, SECRET_NAME_RULE } from './secrets.ts'
import { shortened } from './text.ts'

/** Headers that are about one connection, or that the proxy writes itself, in lower case. */
export const PROXY_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Of requests with secrets, because an answer in another encoding cannot be masked. */
export const ACCEPT_ENCODING = 'accept-encoding'

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const METHOD = /^[A-Z][A-Z-]{0,31}$/
const PATTERN = /^\/[\x21\x22\x24-\x3e\x40-\x7e]*$/ // without "?" and "#"
const TEXT = /^[\x20-\x7e]*$/

/** Parses a rule, with the hosts that it is about. Throws `NotARule`. */
export function parseRequestRule({ host, headers = {}, basic, query = {}, methods, paths }: RequestRule): Rule {
  if (host === undefined) throw new NotARule('expected host')
  const rule = parseRule(host)
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  for (const [name, carried] of Object.entries(headers)) {
    const at = `headers.${shortened(name)}`
    const key = name.toLowerCase()
    if (!TOKEN.test(name)) throw new NotARule(`${at}: expected the name of a header`)
    if (PROXY_HEADERS.has(key) || key === ACCEPT_ENCODING)
      throw new NotARule(`${at}: the proxy writes this header itself`)
    if (names.indexOf(key) !== names.lastIndexOf(key)) throw new NotARule(`${at}: expected each header once`)
    checkCarried(at, carried)
  }
  for (const [name, carried] of Object.entries(query)) {
    if (name === '') throw new NotARule('query: expected names of parameters that are not empty')
    checkCarried(`query.${shortened(name)}`, carried)
  }
  if (basic !== undefined) checkBasic(basic, names)
  for (const [i, method] of checkedList('methods', methods).entries()) {
    if (!METHOD.test(method)) throw new NotARule(`methods[${i}]: expected a method in capital letters (GET)`)
  }
  for (const [i, path] of checkedList('paths', paths).entries()) {
    if (!PATTERN.test(path))
      throw new NotARule(`paths[${i}]: expected a path that begins with "/", without query (/v1/**)`)
  }
  return { ...rule, isOpened: true }
}

function checkCarried(at: string, { secret, prefix }: { readonly secret: string; readonly prefix?: string }): void {
  checkName(`${at}.secret`, secret)
  if (!TEXT.test(prefix ?? '')) throw new NotARule(`${at}.prefix: expected one line of ASCII`)
}

function checkBasic(basic: NonNullable<RequestRule['basic']>, headers: readonly string[]): void {
  if (basic.user === undefined || !TEXT.test(basic.user) || basic.user.includes(':'))
    throw new NotARule('basic.user: expected one line of ASCII without ":"')
  checkName('basic.secret', basic.secret)
  if (headers.includes('authorization')) throw new NotARule('basic: headers has Authorization, too')
}

function checkName(at: string, name: string | undefined): void {
  if (name === undefined || !isSecretName(name)) {
    throw new NotARule(`${at}: ${SECRET_NAME_RULE}, got ${shortened(String(name))}`)
  }
}

/** None would pass if the list were empty. */
function checkedList(at: string, list: readonly string[] | undefined): readonly string[] {
  if (list?.length === 0) throw new NotARule(`${at}: expected at least one (leave it out to let all pass)`)
  return list ?? []
}

/** The names of the secrets that a rule adds, each with its field. */
export const secretsOfRule = ({
  headers = {},
  basic,
  query = {},
}: RequestRule): readonly [field: string, name: string][] => [
  ...Object.entries(headers).map(([name, { secret }]): [string, string] => [`headers.${shortened(name)}`, secret]),
  ...(basic === undefined ? [] : [['basic', basic.secret] as [string, string]]),
  ...Object.entries(query).map(([name, { secret }]): [string, string] => [`query.${shortened(name)}`, secret]),
]

/** Characters of a path that rules with paths let pass. Longer ones take too long to compare. */
export const MAX_RULED_PATH_CHARACTERS = 4_096

/** Whether a rule lets a request pass. `path` has no query. */
export const coversRequest = ({ methods, paths }: RequestRule, method: string, path: string): boolean =>
  (methods === undefined || methods.includes(method)) &&
  (paths === undefined || (isPlain(path) && paths.some((pattern) => isPathOf(pattern, path))))

/** What servers take for the end of a name in a path. */
const SEPARATOR = /[/\\]|%2f|%5c/iy

/** Whether no server reads another path than the one that stands there: `/v1/../admin`, `/v1/%2e%2e;/admin`. */
const isPlain = (path: string): boolean =>
  path.length <= MAX_RULED_PATH_CHARACTERS &&
  !path
    .split(/[/\\]|%2f|%5c/i)
    .some((name) => /^\.{1,2}$/.test(name.replace(/(?:;|%3b|%00).*$/i, '').replace(/%2e/gi, '.')))

/**
 * Whether a path matches a pattern. A part that does not match has the last `*` cover one character more, else the last `**`:
 * earlier ones need not, as they stopped at the first match of what follows them.
 */
function isPathOf(pattern: string, path: string): boolean {
  const parts = pattern.match(/\*\*+|./g)!
  let at = 0
  let next = 0
  let star = { part: -1, from: 0 }
  let stars = { part: -1, from: 0 }
  while (next < path.length) {
    const part = parts[at]
    if (part !== undefined && part.length > 1) {
      stars = { part: ++at, from: next }
      star = { part: -1, from: 0 }
    } else if (part === '*') star = { part: ++at, from: next }
    else if (part === path[next]) {
      at++
      next++
    } else if (star.part >= 0 && !endsNameAt(path, star.from)) {
      at = star.part
      next = ++star.from
    } else if (stars.part >= 0) {
      at = stars.part
      next = ++stars.from
      star.part = -1
    } else return false
  }
  return parts.slice(at).every((part) => part.startsWith('*'))
}

function endsNameAt(path: string, at: number): boolean {
  SEPARATOR.lastIndex = at
  return SEPARATOR.test(path)
}
