/**
 * The JSON Schema of a graph file, for editors, from the schemas that validate a submission. Draft 7, because that is what
 * editors know best.
 *
 * It is stricter than the service in one respect: fields that a task must have to succeed are required, where the service
 * only warns.
 */

import { approvalParams } from '../control/executors/approval.ts'
import { actionInputs } from '../control/operations/action-inputs.ts'
import { APPROVAL_TYPE } from '../shared/contract/approval.ts'
import { SCHEDULE_NAME, ScheduleFields } from '../shared/contract/schedules.ts'
import { MemberInput, TaskGraph, TaskInput } from '../shared/contract/submission.ts'
import { inFull, publicSchema } from '../shared/http/openapi/public-schema.ts'
import { FREE_FIELDS } from '../shared/request/unknown-names.ts'

type Schema = Readonly<Record<string, unknown>>

/** Names that belong to the author, on every object. */
const EXTENSIONS = { '^x[-_]': true }

/** Types without a tool name in front; an executor of one's own may add others. */
const CATEGORIES = ['os', 'runtime', 'mcp', 'cli-skills', APPROVAL_TYPE]

/** Types whose parameters do not depend on a tool, and the names of their schemas. */
const UNTOOLED = { 'cli-skills': 'cli.run', [APPROVAL_TYPE]: APPROVAL_TYPE }

const TOOLS = Object.keys(actionInputs)
  .filter((kind) => /^(os|runtime)\./.test(kind))
  .map((kind) => {
    const [category, tool] = kind.split('.') as [string, string]
    return { kind: kind as keyof typeof actionInputs, category, tool, types: category === 'os' ? [tool, kind] : [kind] }
  })

export function graphFileSchema(): Schema {
  const { id, type, ...rest } = properties(MemberInput)
  const { for_each, max_parallel, fail_fast, dynamic, tasks: members } = properties(TaskInput)
  const ofTask = { for_each, max_parallel, fail_fast, dynamic }
  const ofMember = {
    id: { ...id, minLength: 1 },
    type: {
      description: `${type?.description} An executor of your own has a type of its own.`,
      anyOf: [{ enum: [...TOOLS.flatMap(({ types }) => types), ...CATEGORIES] }, { type: 'string', minLength: 1 }],
    },
    ...rest,
    retry: { ...rest.retry, type: 'integer', minimum: 0 },
    metadata: true,
  }
  const { tasks, ...ofGraph } = properties(TaskGraph)
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Graph of tasks for taskmill',
    description:
      'The body of POST /tasks. Each task runs as soon as all tasks in its depends_on have succeeded; run_if and continue_on_error change that.',
    type: 'object',
    required: ['tasks'],
    properties: {
      $schema: { type: 'string', description: 'Address of this schema, for editors. The service ignores it.' },
      ...ofGraph,
      tasks: { ...tasks, minItems: 1, items: { $ref: '#/definitions/task' } },
      metadata: true,
      annotations: true,
      schedule: {
        type: 'object',
        description: 'When the service submits the graph, in a file of --schedules-dir or of taskmill schedule add.',
        properties: {
          name: {
            type: 'string',
            pattern: SCHEDULE_NAME.source,
            description: 'Name of the schedule. Default: that of the file.',
          },
          ...properties(ScheduleFields),
        },
        additionalProperties: false,
      },
    },
    patternProperties: EXTENSIONS,
    additionalProperties: false,
    definitions: {
      task: {
        type: 'object',
        required: ['id'],
        anyOf: [{ required: ['type'] }, { required: ['tasks'] }],
        properties: {
          ...ofMember,
          ...ofTask,
          tasks: { ...members, type: 'array', minItems: 1, items: { $ref: '#/definitions/member' } },
        },
        patternProperties: EXTENSIONS,
        additionalProperties: false,
        allOf: [{ $ref: '#/definitions/tools' }],
      },
      member: {
        description: 'A task of a group.',
        type: 'object',
        required: ['id', 'type'],
        properties: ofMember,
        patternProperties: EXTENSIONS,
        additionalProperties: false,
        allOf: [{ $ref: '#/definitions/tools' }],
      },
      tools: {
        allOf: [
          ...TOOLS.map(({ kind, category, tool, types }) => ({
            if: {
              required: ['type'],
              anyOf: [
                { properties: { type: { enum: types } } },
                {
                  required: ['tool_name'],
                  properties: { type: { const: category }, tool_name: { enum: [tool, kind] } },
                },
              ],
            },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: parameters(kind),
          })),
          ...Object.entries(UNTOOLED).map(([type, kind]) => ({
            if: { required: ['type'], properties: { type: { const: type } } },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: parameters(kind),
          })),
        ],
      },
      placeholder: PLACEHOLDER,
      [APPROVAL_TYPE]: closed(publicSchema(approvalParams.schema, inFull), FREE_FIELDS),
      ...Object.fromEntries(
        [...TOOLS.map(({ kind }) => kind), 'cli.run' as const].map((kind) => [
          kind,
          closed(publicSchema(actionInputs[kind], inFull), FREE_FIELDS),
        ]),
      ),
    },
  }
}

const properties = (schema: Parameters<typeof publicSchema>[0]) =>
  publicSchema(schema, inFull).properties as Readonly<Record<string, Schema>>

const parameters = (kind: string): Schema => {
  const schema = orPlaceholder({ $ref: `#/definitions/${kind}` })
  return { properties: { params: schema, input: schema } }
}

/** A value that `schema` describes, or a placeholder for one. */
function orPlaceholder(schema: Schema): Schema {
  const { description } = schema
  return { ...(description !== undefined && { description }), anyOf: [schema, { $ref: '#/definitions/placeholder' }] }
}

const as = (forms: readonly string[]) => ({
  type: 'string',
  enum: forms,
  description: 'The form of the value: a text, the value of a text of JSON, or the lines of a text.',
})

/** The placeholders of a task with for_each. */
const OF_ELEMENT: readonly Schema[] = [
  {
    type: 'object',
    description: 'In a task with for_each: its element, or a value in it.',
    required: ['$item'],
    properties: {
      $item: {
        type: 'string',
        description: 'JSON Pointer into the element; "" for all of it.',
        examples: ['', '/name'],
      },
      as: as(['text', 'json', 'lines']),
    },
    additionalProperties: false,
  },
  {
    type: 'object',
    description: 'In a task with for_each: the index of its element, from 0.',
    required: ['$index'],
    properties: { $index: { const: true }, as: as(['text', 'json']) },
    additionalProperties: false,
  },
]

/** The placeholders. */
const PLACEHOLDER: Schema = {
  description: 'Stands for a value that is known when the task starts.',
  anyOf: [
    {
      type: 'object',
      description: 'A value of the record of a task that this task depends on.',
      required: ['$from'],
      properties: {
        $from: { type: 'string', minLength: 1, description: 'The id of that task.' },
        path: {
          type: 'string',
          pattern: '^(/.*)?$',
          description: 'JSON Pointer into its record. Default /result. A name "*" stands for all elements of an array.',
          examples: ['/result/stdout', '/result/*/stdout'],
        },
        default: { description: 'Counts where the record has nothing at the path.' },
        as: as(['text', 'json', 'lines']),
      },
      additionalProperties: false,
    },
    {
      type: 'object',
      description:
        'In inputs of a runtime task: a file or a directory of a runtime task that this task depends on; of one with for_each, those of its children at 0/<file>, 1/<file> and so on.',
      required: ['$from', 'file'],
      properties: {
        $from: { type: 'string', minLength: 1, description: 'The id of that task.' },
        file: {
          description: 'Path in its workspace; "." for all of it. With for_each, $item or $index may be the path.',
          anyOf: [{ type: 'string', minLength: 1, examples: ['dist/app.tar', 'dist'] }, ...OF_ELEMENT],
        },
      },
      additionalProperties: false,
    },
    {
      type: 'object',
      description: 'A parameter of the graph.',
      required: ['$param'],
      properties: { $param: { type: 'string', description: 'The name of the parameter.' } },
      additionalProperties: false,
    },
    {
      type: 'object',
      description: 'The value itself, even if it looks like a placeholder.',
      required: ['$literal'],
      properties: { $literal: true },
      additionalProperties: false,
    },
    {
      type: 'object',
      description: 'A text with the value of a secret, in what an http or mcp task sends.',
      required: ['$secret'],
      properties: {
        $secret: { type: 'string', description: 'The name of the secret.' },
        prefix: { type: 'string', description: 'What stands before the value.', examples: ['Bearer '] },
        suffix: { type: 'string', description: 'What stands after the value.' },
        mask: { type: 'boolean', description: 'Whether the value is *** in what comes back. Default true.' },
      },
      additionalProperties: false,
    },
    ...OF_ELEMENT,
  ],
}

/**
 * The schema, with objects that have no other fields than those it names, the author's own and the `free` ones. Every value
 * inside may be a placeholder.
 */
function closed(schema: Schema, free: readonly string[] = []): Schema {
  if (schema.items !== undefined) return { ...schema, items: orPlaceholder(closed(schema.items as Schema)) }
  if (typeof schema.additionalProperties === 'object') {
    return { ...schema, additionalProperties: orPlaceholder(schema.additionalProperties as Schema) }
  }
  const fields = Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>)
  if (fields.length === 0) return schema
  return {
    ...schema,
    properties: Object.fromEntries([
      ...fields.map(([name, field]) => [name, orPlaceholder(closed(field))]),
      ...free.filter((name) => !fields.some(([known]) => known === name)).map((name) => [name, true]),
    ]),
    patternProperties: EXTENSIONS,
    additionalProperties: false,
  }
}
