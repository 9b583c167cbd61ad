/** The routes of a service, and their query parameters, in Markdown, from their descriptions. */
import type { TSchema } from '@sinclair/typebox'
import type { Answer, DescribedRoute, RouteDescription } from '../shared/http/openapi/route.ts'
import { listed } from './fields-list.ts'

/**
 * The routes with their query parameters, answers and refusals. A route that exists below a graph as well has one item, with a
 * `+`. Throws if a route is not described.
 */
export function routesList(routes: readonly DescribedRoute[]): string {
  const known = new Set(routes.map(({ method, path }) => `${method} ${path}`))
  return routes
    .map((route) => ({ ...route, description: descriptionOf(route) }))
    .filter(({ method, path }) => !path.startsWith(OF_GRAPH) || !known.has(`${method} ${ofService(path)}`))
    .map(({ method, path, description: { summary, right, query = {}, answers, errors = {} } }) => {
      const isTwofold = path.startsWith(OF_SERVICE) && known.has(`${method} ${path.replace(OF_SERVICE, OF_GRAPH)}`)
      const parameters = Object.keys(query).map((name) => `\`${name}\``)
      const given = Object.entries(answers).map(([status, answer]) => `${status}${bodyOf(answer)}`)
      const statuses = [given, Object.keys(errors)].map((some) => some.join(', ')).filter(Boolean)
      const parts = [summary, parameters.length === 0 ? '' : `Query: ${parameters.join(', ')}`, statuses.join('; ')]
      return `- \`${method} ${path}\`${isTwofold ? ' +' : ''}${right === undefined || right === 'none' ? '' : ` (${right})`}. ${parts.filter(Boolean).join('. ')}`
    })
    .join('\n')
}

const OF_SERVICE = '/tasks/{id}'
const OF_GRAPH = '/graphs/{id}/tasks/{task_id}'
const ofService = (path: string) => path.replace(OF_GRAPH, OF_SERVICE)

function descriptionOf({ method, path, description }: DescribedRoute): RouteDescription {
  if (description === undefined)
    throw new Error(`${method} ${path} is not described (see shared/http/openapi/route.ts)`)
  return description
}

/** Each query parameter with each of its meanings. */
export function parametersList(routes: readonly DescribedRoute[]): string {
  const items = routes
    .flatMap(({ description }) => Object.entries(description?.query ?? {}))
    .map(([name, { description, value = {} }]) => listed(name, valuesOf(value), description))
  return [...new Set(items)].join('\n')
}

/** The values of a parameter in a few words. */
function valuesOf({ type, items, anyOf, minimum, maximum }: Partial<TSchema>): string {
  if (type === 'array') return [valuesOf(items), 'repeatable'].filter(Boolean).join('; ')
  if (type === 'integer') return maximum === Number.MAX_SAFE_INTEGER ? `from ${minimum}` : `${minimum} to ${maximum}`
  const words = (anyOf ?? []).map((one: TSchema) => one.const)
  return words.filter((word: string) => !SPELLINGS.includes(word)).join(', ')
}

/** Other spellings of true and false. */
const SPELLINGS = ['1', '0', '']

/** The body in a few words: its name or its media type; nothing for an object without a name. */
function bodyOf({ schema, type }: Answer): string {
  if (schema !== undefined) return shapeOf(schema) === 'object' ? '' : ` ${shapeOf(schema)}`
  return type === undefined ? '' : ` \`${type.split(';')[0]}\``
}

function shapeOf(schema: TSchema): string {
  if (schema.title !== undefined) return `\`${schema.title}\``
  if (schema.anyOf !== undefined) return schema.anyOf.map(shapeOf).join(' or ')
  return schema.type === 'array' ? `array of ${shapeOf(schema.items)}` : 'object'
}
