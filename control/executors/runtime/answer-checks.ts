/** Whether the answer of a runtime service is the status of a task, or about its network. Pure. */

import { TaskStatusResponse } from '../../../shared/contract/runtime.ts'
import { Type } from '../../../shared/contract/schema-builder.ts'
import { NetworkConnection, type TaskNetwork } from '../../../shared/contract/task-network.ts'
import { jsonTypeOf } from '../../../shared/text/json.ts'
import { checkOf, withoutNullFields } from '../../json/schema-check.ts'

const text = Type.Optional(Type.String({ expected: 'string' }))
const flag = Type.Optional(Type.Boolean({ expected: 'boolean' }))
const count = Type.Integer({ minimum: 0, expected: 'whole number of 0 or more' })
const maybeCount = Type.Optional(count)

/**
 * The fields that control and its callers read. A newer service may have other error codes and more fields; a field
 * that it leaves out may also be null.
 */
const StatusAnswer = Type.Object({
  status: TaskStatusResponse.properties.status,
  task_id: text,
  stdout: text,
  stderr: text,
  stdout_truncated: flag,
  stderr_truncated: flag,
  duration_ms: maybeCount,
  exit_code: maybeCount,
  exit_signal: maybeCount,
  error: Type.Optional(Type.Object({ code: text, message: text }, { expected: 'object' })),
})

/** Characters of an invalid text that the message quotes. */
const MAX_REPEATED_TEXT = 100

/** Why `answer` is not the status of task `id`, with the name of the field. Undefined if it is. */
export function statusFault(answer: object, id: string): string | undefined {
  const check = checkOf(StatusAnswer)
  const given = withoutNullFields(StatusAnswer, answer)
  if (check.accepts(given)) {
    const { task_id = id } = given as { task_id?: string }
    return task_id === id ? undefined : `task_id: it is of another task, ${shown(task_id)}`
  }
  const { path, expected, found } = check.faultOf(given)
  return `${path}: expected ${expected}, got ${shown(found)}`
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_REPEATED_TEXT)) : jsonTypeOf(value)

/** `at` is any text here: the page shows what it can read as a time. */
const NetworkAnswer = Type.Object({
  usage: Type.Optional(
    Type.Object({
      ...{ connections_allowed: count, connections_refused: count },
      ...{ bytes_sent: count, bytes_received: count },
    }),
  ),
  open: count,
  connections: Type.Array(Type.Object({ ...NetworkConnection.properties, at: Type.String() })),
  unlisted: count,
})

/** Undefined if it is not. */
export function networkIn(answer: object): TaskNetwork | undefined {
  const given = withoutNullFields(NetworkAnswer, answer)
  return checkOf(NetworkAnswer).accepts(given) ? given : undefined
}
