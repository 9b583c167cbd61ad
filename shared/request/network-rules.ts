/** Validates the rules of a network. The result has them in their normal form. Pure. */
import {
  DEFAULT_MAX_CONNECTIONS,
  MAX_RULES_CHARACTERS,
  NetworkRules,
  type RequestRule,
} from '../contract/runtime-request.ts'
import { NotARule, parseAllowRule, type Rule } from '../egress/rule.ts'
import { parseRules } from '../egress/rules.ts'
import { requestFault } from './fault.ts'
import { checkCount } from './limits.ts'
import { parseRequestRule } from './request-rule.ts'

const FIELD = 'sandbox.network'

/** Throws `RequestFault`. */
export function validRules(given: NetworkRules): NetworkRules {
  const layer = withoutFault(() => rulesOf(given))
  const allow = layer.allow.map(({ text, isOpened }, i) =>
    isOpened ? { ...(given.allow![i] as RequestRule), host: text } : text,
  )
  const deny = layer.deny.map(({ text }) => text)
  const characters = [...allow, ...deny].reduce((sum, rule) => sum + charactersOf(rule), 0)
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
  allow: parseRules<string | RequestRule>(allow, `${FIELD}.allow`, allowRuleOf),
  deny: parseRules(deny, `${FIELD}.deny`),
})

const allowRuleOf = (rule: string | RequestRule): Rule =>
  typeof rule === 'string' ? parseAllowRule(rule) : parseRequestRule(rule)

const charactersOf = (rule: string | RequestRule): number =>
  typeof rule === 'string' ? rule.length : JSON.stringify(rule).length

/** A rule about single requests, and the hosts that it is about. */
export interface OpenedRule {
  readonly hosts: Rule
  readonly requests: RequestRule
}

/** The rules about single requests among those of a network. */
export const openedRulesOf = ({ allow = [] }: NetworkRules): OpenedRule[] =>
  allow.flatMap((rule) => (typeof rule === 'string' ? [] : [{ hosts: parseRequestRule(rule), requests: rule }]))

export const hasOpenedRules = ({ allow = [] }: NetworkRules): boolean => allow.some((rule) => typeof rule !== 'string')

function withoutFault<T>(parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    throw error instanceof NotARule ? requestFault(error.message) : error
  }
}
