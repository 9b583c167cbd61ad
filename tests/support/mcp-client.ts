/** Connects the client of the official SDK to one of our services. */
import { expect } from 'bun:test'
import {
  Client,
  type ElicitRequest,
  type ElicitResult,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { TypeRegistry } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { TOOLS } from '../../control/mcp-server/tools.ts'

TypeRegistry.Set('Unsafe', () => true) // a schema that only gives a type

export const ERAS = ['legacy', 'auto'] as const

export interface Answer {
  readonly isError: boolean
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  readonly data: any
}

interface ConnectedClient extends AsyncDisposable {
  readonly client: Client
  call(name: string, args?: Record<string, unknown>, options?: Parameters<Client['callTool']>[1]): Promise<Answer>
}

/** `onElicit` answers for the person who uses the host. Without it the host cannot ask. `path`: with sets of tools. */
export async function connectClient(
  url: string,
  mode: (typeof ERAS)[number] = 'auto',
  headers: Record<string, string> = {},
  onElicit?: (params: ElicitRequest['params']) => ElicitResult,
  path = '/mcp',
): Promise<ConnectedClient> {
  const capabilities = onElicit && { elicitation: { form: {} } }
  const options = { versionNegotiation: { mode }, ...(capabilities && { capabilities }) }
  const client = new Client({ name: 'tests', version: '1' }, options)
  if (onElicit !== undefined) client.setRequestHandler('elicitation/create', ({ params }) => onElicit(params))
  await client.connect(new StreamableHTTPClientTransport(new URL(path, url), { requestInit: { headers } }))
  // The client checks structured content against the schema of the answer, once it knows that.
  await client.listTools()
  return {
    client,
    async call(name, args = {}, options) {
      const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: args }, options)
      const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
      // The list of tools only outlines the answers.
      const { answer } = TOOLS.find((tool) => tool.name === name) ?? {}
      if (answer !== undefined && !isError) expect([...Value.Errors(answer, structuredContent)]).toEqual([])
      return { isError, text, data: structuredContent }
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}
