/**
 * Finds fields that a schema does not know, so that a misspelt field is not silently dropped. Pure.
 *
 * Names that begin with `x-` or `x_` belong to the caller and are allowed at every level.
 */
import type { TSchema } from '@sinclair/typebox'
import { nearestName, type Synonyms, synonymsOf } from '../text/nearest-name.ts'

/** Values of `--unknown-fields`: whether unknown fields, parameters and query parameters are refused. */
export const UNKNOWN_FIELDS = ['refuse', 'ignore'] as const
export type UnknownFields = (typeof UNKNOWN_FIELDS)[number]

/** Fields that every object of a request may have in addition. They belong to the caller. */
export const FREE_FIELDS = ['metadata', 'annotations'] as const

/** Characters of a caller's name in an error. */
const MAX_REPEATED_CHARACTERS = 128

/** An unknown name, and the known one that it probably means. */
export interface UnknownName {
  /** Path of the object with the name; empty for the whole request. */
  readonly at: string
  readonly path: string
  readonly nearest: string | undefined
}

export const isExtension = (name: string): boolean => name.startsWith('x-') || name.startsWith('x_')

/** A caller's name for an error text: in quotes, on one line, shortened. */
export const quoted = (name: string): string =>
  JSON.stringify(
    name.length > MAX_REPEATED_CHARACTERS ? `${name.slice(0, MAX_REPEATED_CHARACTERS)}...` : name,
  ).toWellFormed()

/** The end of an error text: ` (did you mean "depends_on"?)`, or nothing. */
export const didYouMean = (nearest: string | undefined): string =>
  nearest === undefined ? '' : ` (did you mean ${quoted(nearest)}?)`

/** The first name of `given` that is neither in `known` nor an extension; else undefined. */
export function firstUnknown(given: object, known: ReadonlySet<string>): string | undefined {
  for (const name in given) if (isUnknown(name, known)) return name
  return undefined
}

/** All names of `given` that are neither in `known` nor extensions. */
export const allUnknown = (given: object, known: ReadonlySet<string>): string[] =>
  Object.keys(given).filter((name) => isUnknown(name, known))

const isUnknown = (name: string, known: ReadonlySet<string>): boolean => !known.has(name) && !isExtension(name)

/** Other names for parameters of tools and fields of a runtime request. */
const PARAMETER_SYNONYMS: Synonyms = {
  args: 'arguments',
  arguments: 'args',
  argv: 'args',
  cmd: ['command', 'program'],
  command: 'program',
  cpu: 'cpu_time_sec',
  cpu_ms: 'cpu_time_sec',
  cpu_seconds: 'cpu_time_sec',
  cwd: ['dir', 'workspace_subdir'],
  data: ['body', 'content'],
  dir: 'workspace_subdir',
  directory: 'dir',
  environment: 'env',
  executable: ['command', 'program'],
  file: 'path',
  filename: 'path',
  host: ['name', 'address'],
  hostname: ['name', 'address'],
  id: ['task_id', 'handle_id'],
  max_pids: 'pids_max',
  mem: 'memory_bytes',
  memory_limit: 'memory_bytes',
  memory_mb: 'memory_bytes',
  mode: 'capability_mode',
  ms: 'duration_ms',
  network: 'net',
  operation: 'action',
  output: 'save_to',
  pids_limit: 'pids_max',
  processes: 'pids_max',
  program: 'command',
  seconds: 'duration_ms',
  shell: 'interpreter',
  strict: 'capability_mode',
  text: ['content', 'message'],
  timeout: ['timeout_ms', 'wall_time_ms'],
  timeout_ms: 'wall_time_ms',
  tool_name: 'tool',
  uri: 'url',
  variables: 'env',
  workdir: ['dir', 'workspace_subdir'],
  working_dir: ['dir', 'workspace_subdir'],
}

/**
 * Calls `onUnknown`, which may throw, for each field of `value` that `schema` does not know. Checks all objects whose schema
 * names fields, those in maps too; the names of a map belong to the caller. `at` is the path of `value`, empty for a whole request. The nearest name comes
 * from the same object, else from elsewhere in the request if it is the same name.
 */
export function eachUnknownField(
  schema: TSchema,
  value: unknown,
  onUnknown: (unknown: UnknownName) => void,
  at = '',
  whole = objectForm(schema),
): void {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return
  const { properties, patternProperties } = objectForm(schema)
  if (patternProperties !== undefined) {
    const [member] = Object.values<TSchema>(patternProperties)
    if (hasNames(objectForm(member!).properties))
      for (const [name, inner] of Object.entries(value))
        eachUnknownField(member!, inner, onUnknown, pathOf(at, name), objectForm(member!))
    return
  }
  if (!hasNames(properties)) return
  for (const name in value) {
    if (Object.hasOwn(properties, name)) {
      const member = (value as Record<string, unknown>)[name]
      eachUnknownField(properties[name]!, member, onUnknown, pathOf(at, name), whole)
    } else if (!isExtension(name) && !(at === '' && (FREE_FIELDS as readonly string[]).includes(name))) {
      const here = nearestName(name, Object.keys(properties), PARAMETER_SYNONYMS)
      const nearest = here === undefined ? elsewhere(whole, name) : pathOf(at, here)
      onUnknown({ at, path: pathOf(at, name), nearest })
    }
  }
}

/**
 * `value` without the fields that `schema` does not know. An object whose schema forbids other names is not changed, so that
 * its reader refuses them.
 */
export function withoutUnknownFields(schema: TSchema, value: unknown): unknown {
  const properties: Record<string, TSchema> | undefined = schema.properties
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  if (!hasNames(properties) || schema.additionalProperties === false) return value
  const known: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(properties, name)) known[name] = withoutUnknownFields(properties[name]!, member)
  }
  return known
}

/** The form of `schema` for objects: of several forms the only map, or the only one with names that forbids others. Else `schema`. */
export const objectForm = (schema: TSchema): TSchema =>
  (schema.anyOf as readonly TSchema[] | undefined)?.find(
    ({ properties, patternProperties, additionalProperties }) =>
      patternProperties !== undefined || (properties !== undefined && additionalProperties === false),
  ) ?? schema

/** An object whose schema names no fields belongs to the caller. */
function hasNames(properties: Record<string, TSchema> | undefined): properties is Record<string, TSchema> {
  for (const _ in properties) return true
  return false
}

const pathOf = (at: string, name: string): string => (at === '' ? name : `${at}.${name}`)

/** Path of the first field of `schema`, at any depth, with this name or one that `name` is a synonym of. */
function elsewhere(schema: TSchema, name: string, at = ''): string | undefined {
  for (const [field, member] of Object.entries<TSchema>(schema.properties)) {
    if (field === name || synonymsOf(name, PARAMETER_SYNONYMS).includes(field)) return pathOf(at, field)
    const inner = member.properties === undefined ? undefined : elsewhere(member, name, pathOf(at, field))
    if (inner !== undefined) return inner
  }
  return undefined
}
