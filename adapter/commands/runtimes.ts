/** `taskmill runtimes`: lists, adds, drains and removes the runtime services of control. */

import { UsageError } from '../../shared/contract/errors.ts'
import type { PooledRuntime, RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { readToken } from '../../shared/http/token.ts'
import { flag, text, texts } from '../../shared/settings/flags.ts'
import { runtimeLabels } from '../../shared/settings/runtime-entry.ts'
import { EXIT, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { verbOf } from './verb.ts'

/** The verbs, with the names of their arguments. */
const VERBS = {
  list: [],
  add: ['NAME', 'URL'],
  drain: ['NAME'],
  undrain: ['NAME'],
  remove: ['NAME'],
} as const

type Verb = keyof typeof VERBS

const SYNONYMS = {
  ls: 'list',
  show: 'list',
  register: 'add',
  cordon: 'drain',
  uncordon: 'undrain',
  rm: 'remove',
  delete: 'remove',
}

export const runtimes = defineCommand({
  summary: 'List, add, drain and remove the runtime services that run tasks.',
  usage:
    '[list] | add NAME URL [--label gpu --label zone=a] [--token-file FILE] | drain NAME [--why TEXT] | undrain NAME | remove NAME [--lost]',
  settings: {
    label: texts({
      value: 'key=value',
      help: 'With add: a label. gpu is the label gpu without a value. One flag may hold several: gpu,zone=a.',
    }),
    tokenFile: text({
      value: 'file',
      help: 'With add: file with the token that the runtime service requires. Without it, control sends none, or the one that it has for this address.',
    }),
    why: text({ value: 'text', help: 'With drain: the reason, for whoever asks.' }),
    lost: flag({
      help: 'With remove: its machine is gone for good. Its attempts fail and may be retried; if it comes back, they are ended there.',
    }),
  },
  maxArguments: 3,
  async run({ values: { label, tokenFile, lost, why }, positionals, client }) {
    const { verb, name, url } = askedFor(positionals)
    if (label.length > 0 && verb !== 'add') throw new UsageError(`--label belongs to runtimes add, not to ${verb}`)
    if (tokenFile !== '' && verb !== 'add') throw new UsageError(`--token-file belongs to runtimes add, not to ${verb}`)
    if (lost && verb !== 'remove') throw new UsageError(`--lost belongs to runtimes remove, not to ${verb}`)
    if (why !== '' && verb !== 'drain') throw new UsageError(`--why belongs to runtimes drain, not to ${verb}`)
    const path = `/runtimes/${encodeURIComponent(name)}`
    if (verb === 'list') {
      const answer = (await client.call({ method: 'GET', path: '/runtimes' })) as RuntimesResponse
      return {
        data: answer,
        exitCode: EXIT.success,
        table: async (look) => (await import('../table/runtimes.ts')).runtimesTable(answer.runtimes, look),
      }
    }
    if (verb === 'add') {
      const token = readToken(tokenFile, undefined)
      const body = new TextEncoder().encode(JSON.stringify({ name, url, labels: labelsOf(label), token }))
      return success((await client.call({ method: 'POST', path: '/runtimes', body })) as PooledRuntime)
    }
    if (verb === 'remove')
      return success(await client.call({ method: 'DELETE', path: lost ? `${path}?lost=true` : path }))
    const body = why === '' ? {} : { body: new TextEncoder().encode(JSON.stringify({ why })) }
    return success(await client.call({ method: 'POST', path: `${path}/${verb}`, ...body }))
  },
})

function askedFor([given = 'list', ...rest]: readonly string[]): { verb: Verb; name: string; url: string } {
  const verb = verbOf('runtimes', given, Object.keys(VERBS) as Verb[], SYNONYMS)
  const names: readonly string[] = VERBS[verb]
  const missing = names[rest.length]
  if (missing !== undefined) throw new UsageError(`runtimes ${verb} needs ${missing} (see runtimes --help)`)
  if (rest.length > names.length)
    throw new UsageError(`unexpected argument "${rest[names.length]}" for runtimes ${verb}`)
  const [name = '', url = ''] = rest
  return { verb, name, url }
}

function labelsOf(given: readonly string[]): Readonly<Record<string, string>> {
  const labels = runtimeLabels(given.flatMap((label) => label.split(',')))
  if (typeof labels !== 'string') return labels
  throw new UsageError(`invalid value for --label: expected ${labels}`)
}
