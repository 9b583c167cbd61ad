/** `taskmill secrets`: lists, sets and removes the secrets of the services of `taskmill up`. */
import { text } from '../../shared/settings/flags.ts'
import type { Answer } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { verbOf } from './verb.ts'

const VERBS = ['list', 'set', 'remove'] as const

const SYNONYMS = {
  ls: 'list',
  show: 'list',
  add: 'set',
  create: 'set',
  put: 'set',
  rm: 'remove',
  delete: 'remove',
  unset: 'remove',
}

export const secrets = defineCommand({
  summary: 'List, set and remove the secrets of the services that taskmill up started. Values are never printed.',
  usage: '[list] | set NAME < FILE | remove NAME  [--secrets-dir DIR]',
  settings: {
    secretsDir: text({
      variable: 'SERVICE_SECRETS_DIR',
      value: 'directory',
      help: 'The directory, as in --secrets-dir of a service. Default: that of the services of taskmill up. The next attempt of a task gets what is set, without a restart.',
    }),
  },
  // A value among the arguments would be printed as an unexpected one.
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, env }): Promise<Answer> {
    const [given = 'list', ...rest] = positionals
    const verb = verbOf('secrets', given, VERBS, SYNONYMS)
    const { editSecrets } = await import('../secrets/edit.ts')
    return editSecrets({ verb, rest, secretsDir: values.secretsDir, env })
  },
})
