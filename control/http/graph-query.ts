/** The query of GET /graphs: filter and page. Pure. */

import { badRequest } from '../../shared/contract/errors.ts'
import { LISTED_GRAPH_STATES, UNREADABLE, WAITING_KINDS } from '../../shared/contract/graph-state.ts'
import { DEFAULT_PAGE_GRAPHS, MAX_PAGE_GRAPHS } from '../../shared/contract/graphs.ts'
import { LABEL_NAME } from '../../shared/contract/submission.ts'
import { anyText, type QueryOf, repeatable, truth, wholeNumber } from '../../shared/http/openapi/route.ts'
import { type GraphPageRequest, graphPlaceOf } from '../operations/graph-filter.ts'
import { invalidCursor, knownValues, limitOf, repeatedValues, timeOf, truthOf } from './query-values.ts'

export const graphQuery = {
  state: repeatable(
    'A state. unreadable stands alone: graphs in a database whose rows cannot be read.',
    LISTED_GRAPH_STATES,
  ),
  waiting: repeatable(
    'What a task of the graph waits for: an answer to an approval, or its next attempt.',
    WAITING_KINDS,
  ),
  paused: truth('true: only graphs that are paused themselves; false: only others.'),
  name: anyText('The whole name.'),
  tenant: anyText('Only graphs of this tenant.'),
  label: repeatable('A label as name=value. All of several must match.'),
  since: anyText('Graphs accepted at this time (RFC 3339) or later.'),
  until: anyText('Graphs accepted before this time (RFC 3339).'),
  limit: wholeNumber(1, MAX_PAGE_GRAPHS, `Graphs of a page. Default ${DEFAULT_PAGE_GRAPHS}.`),
  cursor: anyText('X-Next-Cursor of an earlier answer with the same filter: continues after that page.'),
}
type GraphQuery = QueryOf<typeof graphQuery>

/** Throws 400 with the parameter, its value and the allowed values. */
export function graphPageRequest(query: GraphQuery, url: string): GraphPageRequest {
  const { state, waiting, paused, name, tenant, since, until, limit, cursor } = query
  const labels = query.label === undefined ? [] : new URL(url).searchParams.getAll('label') // Elysia splits at commas
  const states = knownValues('state', state, LISTED_GRAPH_STATES)
  const kinds = knownValues('waiting', waiting, WAITING_KINDS)
  if (
    states.includes(UNREADABLE) &&
    [...new Set(states), ...kinds, paused, name, tenant, query.label, since, until].join('') !== UNREADABLE
  )
    throw badRequest(`state=${UNREADABLE} cannot be combined with other filters`)
  return {
    filter: {
      states,
      waiting: kinds,
      ...(paused !== undefined && { paused: truthOf('paused', paused) }),
      name: named('name', name, 'a graph'),
      tenant: named('tenant', tenant, 'a tenant'),
      labels: repeatedValues('label', labels).map(labelOf),
      since: timeOf('since', since),
      until: timeOf('until', until),
    },
    after: cursor === undefined ? undefined : afterOf(cursor),
    limit: limitOf(limit, { most: MAX_PAGE_GRAPHS, standard: DEFAULT_PAGE_GRAPHS }),
  }
}

function named(parameter: string, text: string | undefined, what: string): string | undefined {
  if (text !== '') return text
  throw badRequest(`invalid ${parameter} "": expected the name of ${what}`)
}

/** Values may have commas and equals signs. */
function labelOf(text: string): [name: string, value: string] {
  const [label, ...value] = text.split('=')
  if (label !== undefined && new RegExp(LABEL_NAME).test(label) && value.length > 0) return [label, value.join('=')]
  throw badRequest(`invalid label ${JSON.stringify(text)}: expected name=value`)
}

function afterOf(cursor: string) {
  const place = graphPlaceOf(cursor)
  if (place !== undefined) return place
  throw invalidCursor(cursor)
}
