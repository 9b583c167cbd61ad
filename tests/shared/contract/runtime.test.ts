/**
 * Goal: what is written about the runtime service is complete and right. Method: a walk over every field of every schema.
 */
import { describe, expect, test } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { ERROR_CODES } from '../../../shared/contract/error-codes.ts'
import * as runtime from '../../../shared/contract/runtime.ts'
import * as info from '../../../shared/contract/runtime-info.ts'
import * as request from '../../../shared/contract/runtime-request.ts'
import { hasEnded, RUNTIME_STATUSES } from '../../../shared/contract/runtime-status.ts'

const isSchema = (value: unknown): value is TSchema =>
  typeof value === 'object' && value !== null && 'properties' in value

const schemas = Object.entries({ ...request, ...runtime, ...info }).filter(([, value]) => isSchema(value)) as [
  string,
  TSchema,
][]

/** Every field below `schema`, with its path. */
function* fieldsOf(at: string, schema: TSchema): Generator<[path: string, field: TSchema]> {
  for (const [name, field] of Object.entries<TSchema>(schema.properties ?? {})) {
    yield [`${at}.${name}`, field]
    yield* fieldsOf(`${at}.${name}`, field)
  }
  if (schema.items !== undefined) yield* fieldsOf(`${at}[]`, schema.items)
}

const fields = schemas.flatMap(([name, schema]) => [...fieldsOf(name, schema)])

test('there are schemas for the request, the answers and what the service says of itself', () => {
  expect(schemas.map(([name]) => name)).toEqual(
    expect.arrayContaining(['SubmitTaskRequest', 'TaskStatusResponse', 'EventRecord', 'ResourcesSnapshot']),
  )
  expect(fields.length).toBeGreaterThan(150)
})

test('every plain field says in a sentence what it is', () => {
  const silent = fields.filter(([, field]) => field.properties === undefined && field.items?.properties === undefined)
  const wrong = silent.filter(([, field]) => !/^[^ ].*\.$/.test(field.description ?? ''))
  expect(wrong.map(([path]) => path)).toEqual([])
})

test('every field of the request has the words that an error needs', () => {
  const requested = [...fieldsOf('request', request.SubmitTaskRequest)]
  expect(requested.filter(([, { expected }]) => typeof expected !== 'string').map(([path]) => path)).toEqual([])
})

test('every schema can be checked with', () => {
  for (const [, schema] of schemas) expect(Value.Check(schema, {})).toBeBoolean()
  for (const [, field] of fields) expect(Value.Check(field, 'nothing that any field is')).toBeBoolean()
})

test('examples and defaults are right', () => {
  const wrong = fields.flatMap(([path, field]) =>
    [...(field.examples ?? []), ...('default' in field ? [field.default] : [])]
      .filter((example) => !Value.Check(field, example))
      .map((example) => `${path}: ${JSON.stringify(example)}`),
  )
  expect(wrong).toEqual([])
})

describe('names', () => {
  test('of errors of tasks are those that control knows', () => {
    expect(runtime.TASK_ERROR_CODES.filter((code) => !(ERROR_CODES as readonly string[]).includes(code))).toEqual([])
  })

  test('are in snake case', () => {
    const names = [...runtime.TASK_ERROR_CODES, ...runtime.REFUSAL_CODES, ...runtime.EVENT_TYPES, ...RUNTIME_STATUSES]
    expect(names.filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([])
  })

  test('of states: three of them are ends', () => {
    expect(RUNTIME_STATUSES.filter(hasEnded)).toEqual(['success', 'failed', 'cancelled'])
    expect(hasEnded('skipped')).toBe(false)
  })
})
