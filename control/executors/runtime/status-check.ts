/** Whether the answer of a runtime service is the status of a task. Pure. */
import { type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import { RUNTIME_STATUSES } from '../../../shared/contract/runtime-status.ts'
import { isGiven, jsonTypeOf } from '../../../shared/json.ts'

interface Field {
  readonly path: readonly string[]
  readonly schema: TSchema
  readonly expected: string
  readonly isRequired?: boolean
}

const { properties } = TaskStatusResponse

const text = (...path: string[]): Field => ({ path, schema: Type.String(), expected: 'string' })
const flag = (name: 'stdout_truncated' | 'stderr_truncated'): Field => ({
  ...{ path: [name], schema: properties[name], expected: 'boolean' },
})
const count = (name: 'duration_ms' | 'exit_code' | 'exit_signal'): Field => ({
  ...{ path: [name], schema: properties[name], expected: 'whole number of 0 or more' },
})

/**
 * The fields that control and its callers read, parents first. A newer service may have other error codes and more
 * fields; those that it leaves out may also be null.
 */
const FIELDS: readonly Field[] = [
  {
    ...{ path: ['status'], schema: properties.status, isRequired: true },
    expected: `one of ${RUNTIME_STATUSES.join(', ')}`,
  },
  ...[text('task_id'), text('stdout'), text('stderr')],
  ...[flag('stdout_truncated'), flag('stderr_truncated')],
  ...[count('duration_ms'), count('exit_code'), count('exit_signal')],
  { path: ['error'], schema: Type.Object({}), expected: 'object' },
  ...[text('error', 'code'), text('error', 'message')],
]

/** Characters of a wrong text that are repeated. */
const MAX_REPEATED_TEXT = 100

/** What is wrong with `answer` as the status of a task: names the field. Undefined when it is one. */
export function statusFault(answer: object): string | undefined {
  for (const { path, schema, expected, isRequired = false } of FIELDS) {
    const value = valueAt(answer, path)
    const isFine = isRequired || isGiven(value) ? Value.Check(schema, value) : true
    if (!isFine) return `${path.join('.')}: expected ${expected}, got ${shown(value)}`
  }
  return undefined
}

const valueAt = (answer: object, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (isGiven(at) ? (at as Record<string, unknown>)[name] : undefined), answer)

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_REPEATED_TEXT)) : jsonTypeOf(value)
