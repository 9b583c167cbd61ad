/**
 * The input of runtime actions: a program or a script, with limits, sandbox, policy and context. Pure.
 *
 * An action has the whole request of the runtime service (`execution` and the rest), or the flat form, with the fields
 * of `execution` beside the rest. Runtime tasks get the whole request. The runtime service itself checks paths,
 * capabilities and quotas.
 */
import type { TObject } from '@sinclair/typebox'
import type { ActionKind } from '../../shared/contract/adapter-v1.ts'
import { type ExecutionKind, SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { executionFields, placementFields } from '../rules/runtime-parameters.ts'
import type { Input } from './input-check.ts'
import { invalidAction } from './request.ts'

/** The fields without the id, which comes from the task, and without `execution`, which has several forms here. */
const { task_id: _, execution: __, ...requestFields } = SubmitTaskRequest.properties
const REST = { ...requestFields, ...placementFields }

const { program, args, script, interpreter, env, stdin } = executionFields
const ownFields = { command: { program, args, env, stdin }, script: { script, interpreter, env, stdin } }

type RuntimeKind = Extract<ActionKind, `runtime.${string}`>
const executionKind = (kind: RuntimeKind): ExecutionKind => (kind === 'runtime.command' ? 'command' : 'script')

/** The field that names the program or the script. */
const MAIN_FIELD = { command: 'program', script: 'script' } as const

/** The schema of the input of an action, flat or whole. */
function runtimeInput(kind: ExecutionKind): TObject {
  const execution = Type.Optional(
    Type.Object(
      {
        kind: Type.Optional(
          Type.String({ expected: 'string', description: 'Follows from the action; may be left out.', enum: [kind] }),
        ),
        ...ownFields[kind],
      },
      {
        expected: 'object',
        description: `The same fields in one object, as the runtime service takes them; instead of ${MAIN_FIELD[kind]} and the others beside it.`,
      },
    ),
  )
  return Type.Object({ ...ownFields[kind], execution, ...REST })
}

export const runtimeCommandInput = runtimeInput('command')
export const runtimeScriptInput = runtimeInput('script')

/** The whole request for `input`, which the schema of `kind` has accepted. Throws 400. */
export function runtimeRequest(kind: RuntimeKind, input: Input): Input {
  const wanted = executionKind(kind)
  const isWhole = input.execution !== undefined
  const at = isWhole ? 'input.execution' : 'input'
  const fields = (input.execution ?? input) as Input
  for (const field of Object.keys(executionFields)) {
    if (isWhole && input[field] !== undefined) {
      throw invalidAction(`input.${field} and input.execution exclude each other`)
    }
    if (fields[field] !== undefined && !(field in ownFields[wanted])) {
      const other = wanted === 'command' ? 'runtime.script' : 'runtime.command'
      throw invalidAction(`${at}.${field} does not belong to ${kind} (use ${other})`)
    }
  }
  if (isWhole && fields.kind !== undefined && fields.kind !== wanted) {
    throw invalidAction(`${at}.kind must be "${wanted}" for ${kind}, or left out`)
  }
  const main = MAIN_FIELD[wanted]
  if (fields[main] === undefined || fields[main] === '') throw invalidAction(`${at}.${main} is required for ${kind}`)
  return { execution: { kind: wanted, ...pick(fields, ownFields[wanted]) }, ...pick(input, REST) }
}

const pick = (from: Input, names: object): Input =>
  Object.fromEntries(Object.keys(names).flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])))
