/** Validates the rules of a network. The result has them in their normal form. Pure. */
import { DEFAULT_MAX_CONNECTIONS, MAX_RULES_CHARACTERS, NetworkRules } from '../contract/runtime-request.ts'
import { NotARule, parseAllowRule } from '../egress/rule.ts'
import { parseRules } from '../egress/rules.ts'
import { requestFault } from './fault.ts'
import { checkCount } from './limits.ts'

const FIELD = 'sandbox.network'

/** Throws `RequestFault`. */
export function validRules(given: NetworkRules): NetworkRules {
  const layer = withoutFault(() => rulesOf(given))
  const [allow, deny] = [layer.allow, layer.deny].map((rules) => rules.map(({ text }) => text)) as [string[], string[]]
  const characters = [...allow, ...deny].reduce((sum, { length }) => sum + length, 0)
  if (characters > MAX_RULES_CHARACTERS) {
    throw requestFault(`${FIELD}: all rules together have ${characters} characters (at most ${MAX_RULES_CHARACTERS})`)
  }
  const { max_bytes, max_connections = DEFAULT_MAX_CONNECTIONS } = given
  const { properties } = NetworkRules
  if (max_bytes !== undefined) checkCount(`${FIELD}.max_bytes`, max_bytes, properties.max_bytes)
  checkCount(`${FIELD}.max_connections`, max_connections, properties.max_connections)
  return { allow, deny, ...(max_bytes !== undefined && { max_bytes }), max_connections }
}

/** Parses rules. Throws `NotARule`. */
export const rulesOf = ({ allow = [], deny = [] }: NetworkRules) => ({
  allow: parseRules(allow, `${FIELD}.allow`, parseAllowRule),
  deny: parseRules(deny, `${FIELD}.deny`),
})

function withoutFault<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof NotARule ? requestFault(error.message) : error
  }
}
