/** Inputs of the action kinds that no executor of `os` checks. `missing` and `expected` are what executors word faults with. */
import { type TObject, Type } from '@sinclair/typebox'
import { TaskInput } from '../../shared/contract/control.ts'

const texts = { expected: 'array of strings' }

export const mcpCallInput: TObject = Type.Object({
  server: Type.Optional(
    Type.String({ expected: 'string', description: 'Name of the configured server.', examples: ['builtin'] }),
  ),
  tool: Type.Optional(
    Type.String({
      expected: 'string',
      description:
        'Tool of that server. Required, unless the action names it in tool_name: then all of the input is the arguments.',
      examples: ['echo'],
    }),
  ),
  arguments: Type.Optional(
    Type.Object({}, { expected: 'object', description: 'What the tool is called with.', examples: [{ text: 'hi' }] }),
  ),
})

export const cliRunInput: TObject = Type.Object({
  command: Type.Optional(
    Type.String({
      expected: 'string',
      description: 'Program of the allowlist, or a skill. Required, unless the action names a skill in tool_name.',
      examples: ['wc'],
    }),
  ),
  args: Type.Optional(Type.Array(Type.String(), { ...texts, description: 'Arguments.', examples: [['-l']] })),
  dir: Type.Optional(Type.String({ expected: 'string', description: 'Working directory. Default: the service’s.' })),
  stdin: Type.Optional(
    Type.String({ expected: 'string', description: 'What the program reads. Default: nothing.', examples: ['a\nb\n'] }),
  ),
})

export const dnsInput: TObject = Type.Object({
  name: Type.String({
    missing: 'name is required',
    expected: 'string',
    minLength: 1,
    description: 'Name to look up.',
    examples: ['example.org'],
  }),
  record: Type.Optional(
    Type.Union(
      ['ip', 'txt', 'cname', 'mx'].map((record) => Type.Literal(record)),
      { expected: 'ip, txt, cname or mx', description: 'What to look up. Default ip: its addresses.' },
    ),
  ),
})

/** Milliseconds that one try may take; longer waits are what `retry` is for. */
const MAX_TCP_TIMEOUT_MS = 60_000

export const tcpInput: TObject = Type.Object({
  address: Type.String({
    missing: 'address is required (host:port)',
    expected: 'string',
    minLength: 1,
    description: 'host:port, or [address]:port for IPv6.',
    examples: ['127.0.0.1:5432', '[::1]:5432'],
  }),
  timeout_ms: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: MAX_TCP_TIMEOUT_MS,
      default: 5_000,
      expected: `number from 0 to ${MAX_TCP_TIMEOUT_MS}`,
      description: 'Milliseconds to wait for the connection. Default 5000.',
    }),
  ),
})

/** For readers only: a graph is decoded and checked by the rules of POST /tasks. */
export const taskGraphInput: TObject = Type.Object({
  tasks: Type.Optional(
    Type.Array(
      Type.Object({
        ...TaskInput.properties,
        id: Type.String({ minLength: 1, description: 'Unique within the graph.', examples: ['fetch'] }),
        type: Type.String({
          minLength: 1,
          description: 'os, runtime, mcp or cli-skills with a tool_name, or the tool itself: shell, file, http, ...',
          examples: ['shell'],
        }),
        retry: Type.Optional(Type.Integer({ minimum: 0, description: 'Further attempts. Default 0.', examples: [2] })),
      }),
      { minItems: 1, description: 'The tasks of the graph. Required, unless task_graph is given.' },
    ),
  ),
  task_graph: Type.Optional(
    Type.Object(
      { tasks: Type.Array(Type.Object({}), { minItems: 1, description: 'As tasks beside it.' }) },
      { description: 'The same list as POST /tasks takes it, {"tasks": [...]}; instead of tasks.' },
    ),
  ),
})
