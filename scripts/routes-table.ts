/** The routes of a service as a Markdown table, from their descriptions. */
import type { TSchema } from '@sinclair/typebox'
import type { Answer, DescribedRoute } from '../shared/http/openapi/route.ts'
import { markdownTable } from './markdown-table.ts'

/** Throws if a route is not described. */
export function routesTable(routes: readonly DescribedRoute[]): string {
  const rows = routes.map(({ method, path, description }) => {
    if (description === undefined)
      throw new Error(`${method} ${path} is not described (see shared/http/openapi/route.ts)`)
    const { summary, query = {}, answers, errors = {} } = description
    const parameters = Object.keys(query).map((name) => `\`${name}\``)
    const given = Object.entries(answers).map(([status, answer]) => `${status}${bodyOf(answer)}`)
    const statuses = [given, Object.keys(errors)].map((some) => some.join(', ')).filter(Boolean)
    return [`\`${method} ${path}\``, summary, parameters.join(', '), statuses.join('; ')]
  })
  return markdownTable(['method and path', 'what it does', 'query', 'answers; refusals'], rows)
}

/** The body in a few words: its name, its fields or its media type. */
function bodyOf({ schema, type }: Answer): string {
  if (schema !== undefined) return ` ${shapeOf(schema)}`
  return type === undefined ? '' : ` \`${type.split(';')[0]}\``
}

function shapeOf(schema: TSchema): string {
  if (schema.title !== undefined) return `\`${schema.title}\``
  if (schema.anyOf !== undefined) return schema.anyOf.map(shapeOf).join(' or ')
  if (schema.type === 'array') return `array of ${shapeOf(schema.items)}`
  return `\`{${Object.keys(schema.properties ?? {}).join(', ')}}\``
}
