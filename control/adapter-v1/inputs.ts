/** Input schemas of the action kinds that no `os` executor checks. Error messages use `missing` and `expected`. */
import type { TObject } from '@sinclair/typebox'
import { Type } from '../../shared/contract/schema-builder.ts'
import { GraphFields, TaskInput } from '../../shared/contract/submission.ts'

export const mcpCallInput: TObject = Type.Object({
  server: Type.Optional(
    Type.String({ expected: 'string', description: 'Name of the configured server.', examples: ['builtin'] }),
  ),
  tool: Type.Optional(
    Type.String({
      expected: 'string',
      description:
        'Tool of that server. Required unless the action names the tool in tool_name. In that case the whole input is the arguments.',
      examples: ['echo'],
    }),
  ),
  arguments: Type.Optional(
    Type.Object({}, { expected: 'object', description: 'Arguments of the tool.', examples: [{ text: 'hi' }] }),
  ),
})

/** Only documents the input. The graph is decoded and validated by the rules of POST /tasks. */
export const taskGraphInput: TObject = Type.Object({
  tasks: Type.Optional(
    Type.Array(
      Type.Object({
        ...TaskInput.properties,
        id: Type.String({ minLength: 1, description: 'Unique within the graph.', examples: ['fetch'] }),
        type: Type.String({
          minLength: 1,
          description:
            'The tool itself (shell, file, http, ...), or a category with a tool_name: os, runtime, mcp, cli-skills.',
          examples: ['shell'],
        }),
        retry: Type.Optional(Type.Integer({ minimum: 0, description: 'Further attempts. Default 0.', examples: [2] })),
      }),
      { minItems: 1, description: 'The tasks of the graph. Required, unless task_graph is given.' },
    ),
  ),
  task_graph: Type.Optional(
    Type.Object(
      {
        tasks: Type.Array(Type.Object({}), { minItems: 1, description: 'The tasks of the graph.' }),
        ...GraphFields.properties,
      },
      { description: 'A graph in the form of POST /tasks, {"tasks": [...]}. Use it instead of tasks.' },
    ),
  ),
})
