/** `taskmill install-mcp`: prints the configuration for an agent's host. It writes no file: the files are the user's. */
import { choice } from '../../shared/flags.ts'
import { success } from '../envelope.ts'
import { HOSTS, hostConfig } from '../host-config.ts'
import { defineCommand } from './command.ts'

export const installMcp = defineCommand({
  summary: 'Print the configuration that an MCP host (claude, codex, cursor, ...) needs to use the control service.',
  usage: '[--client claude|codex|cursor|generic] [--transport http|stdio]',
  settings: {
    client: choice({ default: 'generic', choices: HOSTS, help: 'The MCP host to configure.' }),
    transport: choice({
      default: 'http',
      choices: ['http', 'stdio'],
      help: 'http: the host calls the service. stdio: the host starts taskmill mcp, which calls the service.',
    }),
  },
  maxArguments: 0,
  async run({ values, client, env }) {
    const program = process.execPath
    const hasToken = (env.SERVICE_TOKEN ?? '') !== ''
    return success(
      hostConfig({ host: values.client, transport: values.transport, url: client.baseUrl, program, hasToken }),
    )
  },
})
