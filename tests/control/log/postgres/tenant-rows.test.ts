/** Goal: rows keep tenants apart, whatever names callers choose, and no program from before tenants runs a graph of one. */
import { expect, test } from 'bun:test'
import { decodeGraph, encodeGraph } from '../../../../control/log/journaled-graph.ts'
import { submissionOf } from '../../../../control/log/postgres/graph-submission.ts'
import { recoveredGraph } from '../../../../control/log/postgres/recovered-graphs.ts'
import { placeIn } from '../../../../control/log/postgres/turn-writes.ts'
import { validateGraph } from '../../../../control/rules/validate.ts'
import { createGraph } from '../../../../control/task/graph.ts'
import { runSync } from '../../../../shared/process/steps.ts'
import { JsonSyntaxError } from '../../../../shared/text/json-bytes.ts'

test('names of groups never meet those of another tenant, or of nobody', () => {
  const names = ['g', '\u0001g', '\u0001a\u0001g', '\u0001\u0001g', 'a\u0001g', 'a', '', '\u0001', '\u0001\u0001']
  const owners = [undefined, 'a', 'b', 'g']
  const groups = owners.flatMap((tenant) => names.map((group) => placeIn({ group }, tenant).group))
  expect(new Set(groups).size).toBe(groups.length)
  expect(placeIn({ group: 'deploy' }, undefined).group).toBe('deploy') // as earlier versions have it
})

const BODY = new TextEncoder().encode('{"tasks":[{"id":"a","type":"noop"}]}')

const submitted = (tenant: string | undefined) => {
  const valid = runSync(validateGraph([{ id: 'a', type: 'noop' }], new Set(['os'])))
  const graph = runSync(createGraph(valid, { id: 'g', ordinal: 1, traceId: 't', createdAt: 5, tenant }))
  return { graph, row: submissionOf(graph, BODY, {}) }
}

test('the row of a graph of a tenant has the tenant and no ids, and earlier versions cannot read it', () => {
  const { row } = submitted('acme')
  expect([row.tenant, row.taskIds]).toEqual(['acme', []])
  expect(() => decodeGraph(Buffer.from(row.payload))).toThrow(JsonSyntaxError)
  const rows = { graph: row.payload, frames: [], ownIds: new Set<string>() }
  const { graph, strayIds } = runSync(recoveredGraph(rows, (why) => new Error(why)))
  expect([graph!.tenant, graph!.isScoped, graph!.tasks[0]!.removal, strayIds.size]).toEqual([
    'acme',
    true,
    undefined,
    0,
  ])
})

test('that of anybody else is as earlier versions have it', () => {
  const { graph, row } = submitted(undefined)
  expect([row.tenant, row.taskIds]).toEqual([undefined, ['a']])
  expect(row.payload).toBe(
    encodeGraph(graph, BODY)
      .map((part) => Buffer.from(part).toString())
      .join(''),
  )
})
