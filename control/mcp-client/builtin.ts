/** The server `builtin`, which always exists, so that calls can be tried without a configured server. Pure. */

import { BUILTIN_SERVER } from './config.ts'
import type { NamedTool } from './tools.ts'

export const ECHO = 'echo'

export const echoTool: NamedTool = {
  server: BUILTIN_SERVER,
  name: ECHO,
  description: 'Answers what it was called with.',
  inputSchema: { type: 'object', description: 'Whatever is to be answered.', additionalProperties: true },
}

export interface EchoResult {
  readonly tool_name: string
  readonly echo: unknown
}

export const echo = (toolName: string, input: unknown): EchoResult => ({ tool_name: toolName, echo: input ?? {} })
