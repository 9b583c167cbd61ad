/** The schema of `inputs`: files of other tasks and given contents, in requests and statuses of the runtime service. */
import type { SchemaOptions, Static, TSchema } from '@sinclair/typebox'
import { Type } from './schema-builder.ts'
import { ANY_NAME } from './string-map.ts'

/** What a task gets, in a status. A request may have these fields, so that a status can be submitted again. */
export const TaskInput = Type.Object(
  {
    task_id: Type.Optional(
      Type.String({ expected: 'string', description: 'Another task of the runtime service, which has ended.' }),
    ),
    file: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'A file or a directory of its workspace; "." for all of it.',
        examples: ['dist/app.tar', 'dist'],
      }),
    ),
    staged: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'SHA-256 of a staged bundle from another runtime service, instead of task_id and file.',
      }),
    ),
    sha256: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'SHA-256 of the content; a request with it gets no other content.',
      }),
    ),
    bytes: Type.Optional(
      Type.Integer({ minimum: 0, expected: 'number', description: 'Bytes of all files of it. In a status.' }),
    ),
    files: Type.Optional(
      Type.Integer({ minimum: 0, expected: 'number', description: 'Number of files. In a status.' }),
    ),
  },
  { additionalProperties: false, expected: 'object with task_id and file, with staged, or with content' },
)
export type TaskInput = Static<typeof TaskInput>

/** An input in a request. A status does not show the content. */
export const RequestedInput = Type.Object(
  {
    ...TaskInput.properties,
    content: Type.Optional(
      Type.String({ expected: 'string', description: 'The text of a file, instead of a file of another task.' }),
    ),
  },
  { additionalProperties: false, expected: TaskInput.expected },
)
export type RequestedInput = Static<typeof RequestedInput>

/**
 * An input of a task of control, which may have any value as its content, and say which runtime service has `task_id`. That service
 * gets a text, and no name.
 */
export const PlacedTaskInput = Type.Object(
  {
    ...TaskInput.properties,
    content: Type.Optional(
      Type.Unknown({
        description: 'The text of a file, instead of a file of another task. Any other value is written as JSON.',
      }),
    ),
    runtime: Type.Optional(
      Type.String({ expected: 'string', description: 'Name of the runtime service that has the task.' }),
    ),
  },
  { additionalProperties: false, expected: TaskInput.expected },
)

export const inputMap = <T extends TSchema>(input: T, options: SchemaOptions) =>
  Type.Record(Type.String({ pattern: ANY_NAME }), input, { expected: 'object of inputs', ...options })
