/** Inputs of the action kinds that no executor of `os` checks. `missing` and `expected` are what executors word faults with. */
import { type TObject, Type } from '@sinclair/typebox'
import { TaskInput } from '../../shared/contract/control.ts'

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
