/** `taskmill version`: the same as `--version`. */
import { VERSION } from '../../shared/version.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const version = defineCommand({
  summary: 'Print the version of the client.',
  usage: '',
  settings: {},
  maxArguments: 0,
  run: async () => success({ version: VERSION }),
})
