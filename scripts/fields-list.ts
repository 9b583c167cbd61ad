/** The fields of an object in a request as a Markdown list, from the schema that checks it. */
import type { TSchema } from '@sinclair/typebox'

/** Fields of objects within the object have their path. Of the objects in `closed`, the page says more elsewhere. */
export const fieldsList = (schema: TSchema, closed: readonly string[] = []): string =>
  fieldsOf(schema, '')
    .filter(({ path }) => !closed.some((parent) => path.startsWith(`${parent}.`)))
    .map(({ path, field }) => listed(path, expectedOf(field), field.description))
    .join('\n')

/** An item of such a list. */
export const listed = (name: string, values: string, description: string | undefined): string =>
  `- \`${name}\`${values === '' ? '' : ` (${plain(values)})`}. ${plain(description)}`

/** A description as Markdown shows it. */
const plain = (description = ''): string => description.replaceAll('*', '\\*')

interface Field {
  readonly path: string
  readonly field: TSchema
}

function fieldsOf(schema: TSchema, parent: string): Field[] {
  const { properties = {} } = objectIn(schema)
  return Object.entries(properties as Record<string, TSchema>).flatMap(([name, field]) => {
    const path = parent === '' ? name : `${parent}.${name}`
    return [{ path, field }, ...fieldsOf(field, path)]
  })
}

/** The object that a value is, or may be. */
const objectIn = (schema: TSchema): Partial<TSchema> =>
  schema.properties === undefined ? (schema.anyOf?.find((one: TSchema) => one.properties !== undefined) ?? {}) : schema

/** What an error text expects, without what the rows below say. */
const expectedOf = (schema: TSchema): string =>
  objectIn(schema).properties === undefined
    ? (schema.expected ?? schema.type ?? '').replace(/ \(\d+\)$/, '') // without an example
    : String(schema.expected ?? 'object').replace(/ (with|of) .*/, '')
