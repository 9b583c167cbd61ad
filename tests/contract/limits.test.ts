/**
 * Goal: limits of submissions hold at their number, and not before. Method: for each limit a submission that has exactly
 * so much, and one that has one more. Others are met by the tests that docs/limits.md names.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { MAX_CACHE_KEY_CHARACTERS } from '../../shared/contract/cache.ts'
import { MAX_CALLBACK_URL_CHARACTERS } from '../../shared/contract/callbacks.ts'
import { type GraphDryRun, MAX_DRY_RUN_ERRORS, MAX_DRY_RUN_TIME_LIMITS } from '../../shared/contract/graph-dry-run.ts'
import { MAX_GROUP_CHARACTERS, MAX_GROUP_LIMIT } from '../../shared/contract/graph-groups.ts'
import { MAX_RERUN_TASKS } from '../../shared/contract/rerun.ts'
import { MAX_SECRETS } from '../../shared/contract/secrets.ts'
import {
  MAX_BACKOFF_FACTOR,
  MAX_BACKOFF_MS,
  MAX_GRAPH_NAME_CHARACTERS,
  MAX_LABEL_VALUE_CHARACTERS,
  MAX_LABELS,
  MAX_PARAMETERS,
  MAX_PARAMETERS_CHARACTERS,
  MAX_RETRY,
  MAX_RETRY_CODES,
} from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl({ flags: ['--callback-policy', 'any'] })
})
afterAll(() => control.dispose())

const some = (count: number, prefix: string, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`${prefix}${i}`, value]))

const inTask = (fields: object) => ({ tasks: [{ id: 'a', type: 'noop', ...fields }] })
const inGraph = (fields: object) => ({ ...inTask({}), ...fields })

/** Name of the limit, its number, a submission with so many, and what the refusal of one more names. */
const LIMITS: readonly [name: string, limit: number, submission: (count: number) => object, names: RegExp][] = [
  ['MAX_RETRY', MAX_RETRY, (n) => inTask({ retry: n }), /retry must be at most 10000/],
  ['MAX_RETRY_CODES', MAX_RETRY_CODES, (n) => inTask({ retry_on: Array(n).fill('timeout') }), /retry_on/],
  ['MAX_BACKOFF_MS', MAX_BACKOFF_MS, (n) => inTask({ backoff: { initial_ms: n } }), /backoff/],
  ['MAX_BACKOFF_FACTOR', MAX_BACKOFF_FACTOR, (n) => inTask({ backoff: { factor: n } }), /backoff/],
  ['MAX_CACHE_KEY_CHARACTERS', MAX_CACHE_KEY_CHARACTERS, (n) => inTask({ cache: { key: 'k'.repeat(n) } }), /cache/],
  ['MAX_GRAPH_NAME_CHARACTERS', MAX_GRAPH_NAME_CHARACTERS, (n) => inGraph({ name: 'n'.repeat(n) }), /name/],
  [
    'MAX_GROUP_CHARACTERS',
    MAX_GROUP_CHARACTERS,
    (n) => inGraph({ concurrency: { group: 'g'.repeat(n) } }),
    /concurrency\.group/,
  ],
  [
    'MAX_GROUP_LIMIT',
    MAX_GROUP_LIMIT,
    (n) => inGraph({ concurrency: { group: 'limits', limit: n } }),
    /concurrency\.limit/,
  ],
  ['MAX_LABELS', MAX_LABELS, (n) => inGraph({ labels: some(n, 'l', 'v') }), /labels/],
  [
    ...(['MAX_LABEL_VALUE_CHARACTERS', MAX_LABEL_VALUE_CHARACTERS] as const),
    (n) => inGraph({ labels: { l: 'v'.repeat(n) } }),
    /labels/,
  ],
  ['MAX_PARAMETERS', MAX_PARAMETERS, (n) => inGraph({ params: some(n, 'p', 1) }), /params/],
  [
    ...(['MAX_CALLBACK_URL_CHARACTERS', MAX_CALLBACK_URL_CHARACTERS] as const),
    (n) => inGraph({ callback: { url: 'http://127.0.0.1:1/'.padEnd(n, 'x') } }),
    /callback/,
  ],
]

describe('a dry run accepts what is at the limit and refuses one more', () => {
  const errorsOf = async (submission: object) => {
    const response = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(submission) })
    const { errors = [], error } = (await response.json()) as { errors?: { message: string }[]; error?: string }
    return [...errors.map(({ message }) => message), ...(error === undefined ? [] : [error])]
  }

  test.each(LIMITS)('%s', async (_, limit, submission, names) => {
    expect(await errorsOf(submission(limit))).toEqual([])
    expect((await errorsOf(submission(limit + 1))).join()).toMatch(names)
  })

  test('MAX_PARAMETERS_CHARACTERS, by about', async () => {
    const long = (characters: number) => inGraph({ params: { p: 'x'.repeat(characters) } })
    expect(await errorsOf(long(MAX_PARAMETERS_CHARACTERS - 100))).toEqual([])
    expect((await errorsOf(long(MAX_PARAMETERS_CHARACTERS))).join()).toMatch(/params/)
  })

  test('MAX_SECRETS', async () => {
    const asking = (count: number) => ({
      tasks: [{ id: 'a', type: 'runtime.script', params: { script: 'true' }, secrets: some(count, 'S', 'token') }],
    })
    expect(await errorsOf(asking(MAX_SECRETS))).toEqual([])
    expect((await errorsOf(asking(MAX_SECRETS + 1))).join()).toMatch(/secrets/)
  })

  test('MAX_DRY_RUN_ERRORS: so many faults are named, and no more', async () => {
    const faulty = (count: number) => ({
      tasks: Array.from({ length: count }, (_, i) => ({ id: `t${i}`, type: 'noop', depends_on: ['none'] })),
    })
    expect((await errorsOf(faulty(MAX_DRY_RUN_ERRORS))).length).toBe(MAX_DRY_RUN_ERRORS)
    expect((await errorsOf(faulty(MAX_DRY_RUN_ERRORS + 10))).length).toBe(MAX_DRY_RUN_ERRORS)
  })

  test('MAX_DRY_RUN_TIME_LIMITS: of so many tasks the time limits are named, and of no more', async () => {
    for (const more of [0, 1]) {
      const tasks = Array.from({ length: MAX_DRY_RUN_TIME_LIMITS + more }, (_, i) => ({
        ...{ id: `t${i}`, type: 'noop', timeout: 1_000 },
      }))
      const call = { method: 'POST', body: JSON.stringify({ tasks }) }
      const found = (await (await control.fetch('/tasks?dry_run=true', call)).json()) as GraphDryRun
      expect(Object.keys(found.time_limits ?? {}).length).toBe(MAX_DRY_RUN_TIME_LIMITS)
      expect(found.truncated).toBe(more === 0 ? undefined : true)
    }
  })
})

test('MAX_RERUN_TASKS: a rerun from more tasks is 400', async () => {
  const { graph_id } = await control.submit([{ id: 'only', type: 'noop' }])
  await control.ended('only')
  const rerun = (count: number) =>
    control.fetch(`/graphs/${graph_id}/rerun`, {
      method: 'POST',
      body: JSON.stringify({ from: Array(count).fill('only') }),
    })
  const refusal = await rerun(MAX_RERUN_TASKS + 1)
  expect([refusal.status, await refusal.text()]).toEqual([400, expect.stringContaining('from')])
  expect((await rerun(1)).status).toBe(202)
})
