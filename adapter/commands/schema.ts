/** `taskmill schema`: the JSON Schema of a graph file, as it is. */
import { messageOf } from '../../shared/contract/errors.ts'
import { writeOut } from '../../shared/process/standard-output.ts'
import { isTerminal } from '../terminal.ts'
import { defineCommand } from './command.ts'

export const schema = defineCommand({
  summary: 'Print the JSON Schema of a graph file, for editors. The schema is printed as it is, without {ok, data}.',
  usage: '',
  settings: {},
  maxArguments: 0,
  ownsOutput: true,
  async run() {
    const { default: graphSchema } = await import('../../shared/contract/graph-schema.json')
    const text = `${JSON.stringify(graphSchema, null, (await isTerminal()) ? 2 : undefined)}\n`
    await writeOut(text).catch((error: unknown) => {
      throw new Error(`cannot write the schema to standard output: ${messageOf(error)}`)
    })
    return undefined
  },
})
