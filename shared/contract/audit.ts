/** Who asked the control service for what: the records of the audit log. */
import type { Static } from '@sinclair/typebox'
import { count, maybe, oneOf, text, time } from './answer-schema.ts'
import { Type } from './schema-builder.ts'

/** By what a request came in. */
export const DOORS = ['http', 'mcp', 'adapter'] as const

export const AuditRecord = Type.Object({
  id: text('Names the record. Later records have greater ones.'),
  time: time('When the request came.'),
  replica: maybe(count('Number of the replica that it came to. Absent without --database.')),
  by: maybe(text('Name of the token. Absent for the token of the service, and without one.')),
  from: maybe(text('Address of the connection. Absent for a Unix socket.')),
  door: oneOf(DOORS, 'http, mcp, or adapter for actions of agents.'),
  what: text('Method and route, or the tool of MCP.'),
  target: maybe(text('Path and query of the request, or the id or name that a tool was given.')),
  trace_id: text('Trace id of the request. Graphs and log lines have it too.'),
  graph_id: maybe(text('The graph that was accepted.')),
  lost: maybe(count('Records of the same replica before this one that the database did not take.')),
  status: maybe(
    count(
      'Status of the answer, or what it would be over HTTP. Absent while there is none, and if the service ended before it.',
    ),
  ),
})
export type AuditRecord = Static<typeof AuditRecord>

export const AuditResponse = Type.Object({
  records: Type.Array(AuditRecord, { description: 'The newest first.' }),
  next: maybe(text('before of the next page. Absent on the last.')),
})
export type AuditResponse = Static<typeof AuditResponse>
