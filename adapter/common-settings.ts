/** The settings of every subcommand. */
import { choice } from '../shared/settings/flags.ts'
import { serviceUrlSetting } from './client.ts'

export const commonSettings = {
  output: choice({
    variable: 'TASKMILL_OUTPUT',
    letter: 'o',
    default: 'json',
    choices: ['json', 'brief', 'table'],
    help: 'json: one JSON object, indented on a terminal. brief: the same with few fields, for models. table: text for people.',
  }),
  url: serviceUrlSetting,
}

export type Output = 'json' | 'brief' | 'table'
