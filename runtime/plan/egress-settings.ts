/** Settings about networks with rules, as they are written. Pure. */
import { NotARule, type Rule } from '../../shared/egress/rule.ts'
import { MAX_RULES } from '../../shared/egress/rules.ts'
import { Expected, list, type Setting, texts } from '../../shared/settings/flags.ts'
import { type ServiceAddress, serviceAddressOf } from './authority.ts'

/** Rules for connections, each a flag of its own. */
export function rules(help: string, parse: (text: string) => Rule): Setting<readonly Rule[] | undefined> {
  const given = texts({ help, value: 'rule' })
  return {
    ...given,
    parse(text) {
      const all = given.parse(text) as readonly string[]
      if (all.length > MAX_RULES) return new Expected(`at most ${MAX_RULES} rules`)
      try {
        return all.map(parse)
      } catch (error) {
        if (error instanceof NotARule) return new Expected(error.message.replace(/^expected /, ''))
        throw error
      }
    },
    absent: undefined,
  }
}

/** Addresses of services of ours. */
export const addresses = (setting: {
  variable: string
  default: string
  help: string
}): Setting<readonly ServiceAddress[]> => ({
  ...list({ ...setting, value: 'address:port' }),
  parse: (given) => {
    const found = given.split(',').map((text) => serviceAddressOf(text.trim()))
    return found.every((one) => one !== undefined)
      ? found
      : new Expected('addresses with ports, such as 10.0.0.5:18081')
  },
  absent: [],
})
