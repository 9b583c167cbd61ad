/** The schema of `inputs`: files of other tasks, in requests and statuses of the runtime service. */
import { type SchemaOptions, type Static, type TSchema, Type } from '@sinclair/typebox'
import { ANY_NAME } from './string-map.ts'

/** What a task gets from another one. A request may have the fields of a status, so that a status can be submitted again. */
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
  { additionalProperties: false, expected: 'object with task_id and file, or with staged' },
)
export type TaskInput = Static<typeof TaskInput>

/** An input of a task of control, which may say which runtime service has `task_id`. That service does not get the field. */
export const PlacedTaskInput = Type.Object(
  {
    ...TaskInput.properties,
    runtime: Type.Optional(
      Type.String({ expected: 'string', description: 'Name of the runtime service that has the task.' }),
    ),
  },
  { additionalProperties: false, expected: TaskInput.expected },
)

export const inputMap = <T extends TSchema>(input: T, options: SchemaOptions) =>
  Type.Record(Type.String({ pattern: ANY_NAME }), input, { expected: 'object of inputs', ...options })
