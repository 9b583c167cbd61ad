/** Whether the answer of a runtime service is about the network of a task. Pure. */
import { Type } from '@sinclair/typebox'
import { NetworkConnection, type TaskNetwork } from '../../../shared/contract/task-network.ts'
import { checkOf, withoutNullFields } from '../../json/schema-check.ts'

const count = Type.Integer({ minimum: 0, expected: 'whole number of 0 or more' })

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
