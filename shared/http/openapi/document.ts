/** The OpenAPI 3.1 document of a service, made from the descriptions of its routes. Pure. */
import type { TSchema } from '@sinclair/typebox'
import { RIGHTS, type RouteRight } from '../../contract/rights.ts'
import { VERSION } from '../../process/version.ts'
import { FREE_FIELDS } from '../../request/unknown-names.ts'
import { isWithoutToken } from '../guard.ts'
import { publicSchema } from './public-schema.ts'
import type { Answer, DescribedRoute, RouteDescription } from './route.ts'

export interface ServiceInfo {
  readonly title: string
  readonly description: string
  /** The body of every refusal. */
  readonly errorSchema: TSchema
}

/** A JSON Schema, or a reference to one. */
export type Schema = Readonly<Record<string, unknown>>

export interface Media {
  readonly schema?: Schema
  readonly example?: unknown
}

export interface Response {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>
  readonly content?: Readonly<Record<string, Media>>
  readonly links?: Readonly<
    Record<string, { readonly operationId: string; readonly parameters: Readonly<Record<string, string>> }>
  >
}

export interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: Schema
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security?: readonly object[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly required: true; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Response>>
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0'
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly security: readonly object[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: object
  }
}

/** The document of a service with these routes. Routes without a description are left out; a test finds them. */
export function openApiDocument(
  { title, description, errorSchema }: ServiceInfo,
  routes: readonly DescribedRoute[],
): OpenApiDocument {
  const schemas = new NamedSchemas()
  const error = schemas.referTo(errorSchema)
  const paths: Record<string, Record<string, Operation>> = {}
  const sections = new Set<string>()
  for (const { method, path, description: route } of routes) {
    if (route === undefined) continue
    sections.add(route.section)
    paths[path] ??= {}
    paths[path][method.toLowerCase()] = operation(route, { path, schemas, error })
  }
  return {
    openapi: '3.1.0',
    info: { title, version: VERSION, description },
    servers: [{ url: '.', description: 'The service that this document comes from, also below a path of a proxy.' }],
    security: [{}, { token: [] }],
    tags: [...sections].map((name) => ({ name })),
    paths,
    components: {
      schemas: schemas.all,
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description:
            'Needed if the service was started with a token. A token with a name needs the right that a route names.',
        },
      },
    },
  }
}

/** Schemas with a `title`. Each is in the document once, under that name. */
class NamedSchemas {
  readonly all: Record<string, Schema> = {}

  /**
   * The schema, or a reference to it if it has a name. Schemas inside it are treated alike. With `isRequest` it says that
   * unknown fields are refused.
   */
  referTo(schema: TSchema, isRequest = false): Schema {
    return publicSchema(schema, (inner, plainForm) => {
      const form = (schema: Schema) => demanding(schema, isRequest ? closed(plainForm(schema)) : plainForm(schema))
      const { title } = inner
      if (typeof title !== 'string') return form(inner)
      if (!(title in this.all)) {
        this.all[title] = {} // keeps its place before the schemas inside it
        this.all[title] = form(inner)
      }
      return { $ref: `#/components/schemas/${title}` }
    })
  }
}

/** `form` with the rules of `schema` that a later check has. */
function demanding({ needs, notEmpty }: Schema, form: Schema): Schema {
  const { required = [] } = form as { required?: readonly string[] }
  return {
    ...form,
    ...(needs !== undefined && { required: [...required, ...(needs as readonly string[])] }),
    ...(notEmpty === true && { minLength: 1 }),
  }
}

/** Names that callers may choose in any object of a request, and those that only a request and its tasks may have. */
const OWN_NAMES = { '^x[-_]': {} }
const OWN_FIELDS = Object.fromEntries(FREE_FIELDS.map((name) => [name, {}]))

/** An object that names its fields refuses others, but for those that belong to the caller. */
function closed(form: Schema): Schema {
  const { properties = {}, additionalProperties, type } = form as { properties?: object } & Schema
  if (type !== 'object' || additionalProperties !== undefined || Object.keys(properties).length === 0) return form
  const isOfCaller =
    'tasks' in properties || 'depends_on' in properties || 'action' in properties || 'execution' in properties
  return {
    ...form,
    properties: isOfCaller ? { ...OWN_FIELDS, ...properties } : properties,
    patternProperties: OWN_NAMES,
    additionalProperties: false,
  }
}

interface Around {
  readonly path: string
  readonly schemas: NamedSchemas
  readonly error: Schema
}

function operation(route: RouteDescription, { path, schemas, error }: Around): Operation {
  const parameters = parametersOf(route, schemas)
  const ofRoute = route.errorSchema === undefined ? error : { anyOf: [schemas.referTo(route.errorSchema), error] }
  const refusals = Object.entries(route.errors ?? {}).map(([status, when]) => [status, refusal(when, ofRoute, status)])
  return {
    operationId: operationName(route.summary),
    tags: [route.section],
    summary: route.summary,
    ...(route.description !== undefined && { description: route.description }),
    ...(isWithoutToken(path) || route.right === 'none'
      ? { security: [] }
      : isNamed(route.right) && { security: [{}, { token: [route.right] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body !== undefined && { requestBody: { required: true, content: bodyOf(route, schemas) } }),
    ...(route.bodyType !== undefined && {
      requestBody: { required: true, content: { [route.bodyType]: { schema: bytesOf(route.bodyType) } } },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(route.answers).map(([status, answer]) => [status, response(answer, schemas)]),
      ),
      ...Object.fromEntries(refusals),
      default: refusal('Another refusal, such as 401 without the token or 403 for a web page.', error),
    },
  }
}

/** Whether a token with a name needs this right. */
const isNamed = (right: RouteRight | undefined): boolean => RIGHTS.some((named) => named === right)

const bodyOf = ({ body, example }: RouteDescription, schemas: NamedSchemas) => ({
  'application/json': { schema: schemas.referTo(body!, true), ...(example !== undefined && { example }) },
})

function parametersOf(route: RouteDescription, schemas: NamedSchemas): Parameter[] {
  const inPath = Object.entries(route.params ?? {}).map(
    ([name, description]): Parameter => ({ name, in: 'path', required: true, description, schema: { type: 'string' } }),
  )
  const inQuery = Object.entries<TSchema>(route.query ?? {}).map(([name, property]): Parameter => {
    const { description, value = property } = property
    const { description: _, ...schema } = schemas.referTo(value)
    return { name, in: 'query', required: false, ...(description !== undefined && { description }), schema }
  })
  const inHeader = Object.entries(route.headers ?? {}).map(
    ([name, description]): Parameter => ({
      ...{ name, in: 'header', required: false, description },
      schema: { type: 'string' },
    }),
  )
  return [...inPath, ...inQuery, ...inHeader]
}

/** A body that is no JSON: a text, or bytes. */
const bytesOf = (type: string): Schema =>
  type.startsWith('text/') ? { type: 'string' } : { type: 'string', format: 'binary', contentMediaType: type }

function response({ description, schema, type, otherType, headers, links }: Answer, schemas: NamedSchemas): Response {
  return {
    description,
    ...(headers !== undefined && {
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, text]) => [name, { description: text, schema: { type: 'string' } }]),
      ),
    }),
    ...(type !== undefined && {
      content: {
        [type]: { schema: schema === undefined ? bytesOf(type) : schemas.referTo(schema) },
        ...(otherType !== undefined && { [otherType]: { schema: bytesOf(otherType) } }),
      },
    }),
    ...(links !== undefined && {
      links: Object.fromEntries(
        Object.entries(links).map(([summary, { parameter, field }]) => [
          operationName(summary),
          { operationId: operationName(summary), parameters: { [parameter]: `$response.body#/${field}` } },
        ]),
      ),
    }),
  }
}

const RETRY_AFTER = {
  'Retry-After': {
    description: 'Seconds after which a caller may ask again.',
    schema: { type: 'integer', minimum: 0 },
  },
}

const refusal = (description: string, error: Schema, status = 'default'): Response => ({
  description,
  ...((status === '429' || status === '503') && { headers: RETRY_AFTER }),
  content: { 'application/json': { schema: error } },
})

/** `Read a task` is `readTask`. */
export const operationName = (summary: string): string =>
  summary
    .toLowerCase()
    .replaceAll(/\b(?:an?|the)\b/g, '')
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
    .map((word, i) => (i === 0 ? word : word[0]!.toUpperCase() + word.slice(1)))
    .join('')
