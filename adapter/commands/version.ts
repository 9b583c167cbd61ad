/** `taskmill version`: the same as `--version`. */
import { BUILD_INFO } from '../../shared/process/build-info.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const version = defineCommand({
  summary: 'Print the version of the client, its commit, its build and the version of Bun in it.',
  usage: '',
  settings: {},
  maxArguments: 0,
  run: async () => success(BUILD_INFO),
})
