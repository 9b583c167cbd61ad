/** `taskmill graphs`: summaries of graphs, a page at a time. */
import { LISTED_GRAPH_STATES, WAITING_KINDS } from '../../shared/contract/graph-state.ts'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { flag, integer, list, text, texts } from '../../shared/settings/flags.ts'
import { briefSummary } from '../../shared/text/brief.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { inFlags } from './in-flags.ts'
import { timeOf } from './time-ago.ts'

export const graphs = defineCommand({
  summary: 'List graphs, the newest first.',
  usage:
    '[--state failed] [--waiting approval] [--paused] [--label team=web] [--name N] [--tenant T] [--since 1h] [--limit 100] [--cursor C]',
  settings: {
    state: list({ value: LISTED_GRAPH_STATES.join(','), help: 'Only graphs in one of these states.' }),
    waiting: list({
      value: WAITING_KINDS.join(','),
      help: 'Only graphs with a task that waits for an answer to an approval, or for its next attempt.',
    }),
    paused: flag({ help: 'Only graphs that are paused themselves.' }),
    label: texts({
      value: 'key=value',
      help: 'Only graphs with all of these labels. One flag may hold several: a=1,b=2. A comma of a value is written \\, where key= follows it.',
    }),
    name: text({ value: 'name', help: 'Only graphs of this name.' }),
    tenant: text({ value: 'tenant', help: 'Only graphs of this tenant.' }),
    since: text({ value: 'time', help: 'Only graphs submitted since then: RFC 3339, or a duration before now (1h).' }),
    until: text({ value: 'time', help: 'Only graphs submitted before then, in the same form.' }),
    limit: integer({ value: 'graphs', default: '100', min: 1, max: 1000, help: 'Graphs on a page.' }),
    cursor: text({ value: 'cursor', help: 'Continue after a page: data.next_cursor of the answer before.' }),
  },
  maxArguments: 0,
  async run({ values: { state, waiting, paused, label, name, tenant, since, until, limit, cursor }, client }) {
    const query = new URLSearchParams({ limit: String(limit) })
    if (state.length > 0) query.set('state', state.join(','))
    if (waiting.length > 0) query.set('waiting', waiting.join(','))
    if (paused) query.set('paused', 'true')
    for (const pair of labelsIn(label)) query.append('label', pair)
    if (name !== '') query.set('name', name)
    if (tenant !== '') query.set('tenant', tenant)
    if (since !== '') query.set('since', timeOf(since))
    if (until !== '') query.set('until', timeOf(until))
    if (cursor !== '') query.set('cursor', cursor)
    const { body, headers } = await inFlags(client.list({ method: 'GET', path: `/graphs?${query}` }))
    const next = headers.get('x-next-cursor')
    return {
      data: { graphs: body, ...(next !== null && { next_cursor: next }) },
      exitCode: EXIT.success,
      brief: () => ({
        graphs: (body as readonly GraphSummary[]).map((graph) => briefSummary(graph)),
        ...(next !== null && { next_cursor: next }),
      }),
      table: async (look) => [
        ...(await import('../table/graph.ts')).graphsTable(body as readonly GraphSummary[], look),
        ...(next === null ? [] : [look.paint('dim', `more: --cursor ${next}`)]),
      ],
    }
  },
})

/** A comma ends a label only where the name of another one follows it, and no backslash stands before it. */
const BETWEEN_LABELS = /(?<!\\),\s*(?=[A-Za-z0-9._/-]{1,63}=)/

const ESCAPED_COMMA = /\\,/g

/** `['a=1,b=2', 'c=x,y', 'd=x\\,e=y']` are the labels `a=1`, `b=2`, `c=x,y`, `d=x,e=y`. */
export const labelsIn = (values: readonly string[]): string[] =>
  values.flatMap((value) => value.split(BETWEEN_LABELS)).map((label) => label.trim().replace(ESCAPED_COMMA, ','))
