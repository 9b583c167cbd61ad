/** `taskmill mcp`: an MCP server on standard input and output that forwards to the control service. */
import { writeError, writeOut } from '../../shared/process/standard-output.ts'
import { defineCommand } from './command.ts'

export const mcp = defineCommand({
  summary: 'Serve MCP on standard input and output, and forward it to the control service (POST /mcp).',
  usage: '',
  settings: {},
  maxArguments: 0,
  ownsOutput: true,
  async run({ findService }) {
    const { runBridge } = await import('../bridge/bridge.ts')
    await runBridge({
      service: findService,
      input: Bun.stdin.stream(),
      print: writeOut,
      complain: (text) => writeError(`taskmill: ${text}\n`),
    })
    return undefined
  },
})
