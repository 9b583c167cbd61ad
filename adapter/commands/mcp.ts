/** `taskmill mcp`: an MCP server on standard input and output that forwards to the control service. */
import { writeError, writeOut } from '../../shared/process/standard-output.ts'
import { toolsets } from '../../shared/settings/toolsets-setting.ts'
import { defineCommand } from './command.ts'

export const mcp = defineCommand({
  summary: 'Serve MCP on standard input and output, and forward it to the control service (POST /mcp).',
  usage: '[--toolsets graphs,schedules]',
  settings: {
    toolsets: toolsets({ help: 'Sets of tools that the host gets. Default: those of the service (--mcp-toolsets).' }),
  },
  maxArguments: 0,
  ownsOutput: true,
  async run({ findService, values }) {
    const { runBridge } = await import('../bridge/bridge.ts')
    await runBridge({
      service: findService,
      toolsets: values.toolsets,
      input: Bun.stdin.stream(),
      print: writeOut,
      complain: (text) => writeError(`taskmill: ${text}\n`),
    })
    return undefined
  },
})
