/**
 * Goal: the options of a graph are those that its schema allows, and a refusal names the field. Method: random fields
 * and the borders of each limit.
 */
import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { graphOptions, graphOptionsFault, NO_GRAPH_OPTIONS } from '../../../control/rules/graph-options.ts'
import { GraphFields } from '../../../shared/contract/submission.ts'

const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`l${i}`, 'v']))

const anyLabels = fc.oneof(
  fc.dictionary(fc.oneof(fc.stringMatching(/^[A-Za-z0-9._/-]{1,64}$/), fc.string()), fc.string(), { maxKeys: 3 }),
  fc.constantFrom(labels(64), labels(65), null, undefined, [], ['a'], 'a', 7, { a: 1 }, { a: null }, { '': 'a' }),
  fc.constantFrom({ a: 'v'.repeat(256) }, { a: 'v'.repeat(257) }, JSON.parse('{"__proto__": "v"}')),
)
const anyName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 3 }),
  fc.constantFrom('nightly', '', 'n'.repeat(200), 'n'.repeat(201), 'a\nb', '\x7f', '\x9f', null, undefined, 7, {}),
)

const anyCallback = fc.oneof(
  fc.constantFrom(null, undefined, 'http://a', [], {}, { url: 7 }, { url: 'ftp://a' }, { url: 'http://a b' }),
  fc.constantFrom({ url: 'http://a' }, { url: 'HTTPS://a/b?c', events: [] }, { url: 'http://a', events: null }),
  fc.constantFrom({ url: 'http://a', events: ['graph_ended', 'task_failed'] }, { url: 'http://a', events: ['x'] }),
  fc.constantFrom({ url: 'http://a', events: 'graph_ended' }, { url: `http://${'a'.repeat(2_042)}` }),
)

const anyParams = fc.oneof(
  fc.dictionary(fc.oneof(fc.stringMatching(/^[A-Za-z0-9._/-]{1,64}$/), fc.string()), fc.jsonValue(), { maxKeys: 3 }),
  fc.constantFrom(labels(256), labels(257), null, undefined, [], 'a', 7, { a: null }, JSON.parse('{"__proto__": 1}')),
)

const anyConcurrency = fc.oneof(
  fc.constantFrom(null, undefined, 'g', [], {}, { group: '' }, { group: 7 }, { group: null }, { limit: 1 }),
  fc.record(
    {
      group: fc.constantFrom('g', 'g'.repeat(200), 'g'.repeat(201)),
      limit: fc.constantFrom(null, 0, 1, 1_000, 1_001, 1.5, '1'),
      on_full: fc.constantFrom(null, 'wait', 'cancel_oldest', 'refuse', 'other', 7),
    },
    { requiredKeys: ['group'] },
  ),
)

const anyPriority = fc.constantFrom(null, undefined, 0, -100, 100, 101, -101, 0.5, '1')
/** The schema allows 30 February, so it is not among these. */
const anyStart = fc.constantFrom(
  null,
  undefined,
  0,
  31_536_000_000,
  31_536_000_001,
  -1,
  0.5,
  '',
  '1m',
  '2030-01-31T09:30:00Z',
)

test('fields are taken exactly if the schema allows them, and otherwise one is named', () => {
  fc.assert(
    fc.property(
      fc.record(
        {
          ...{ name: anyName, labels: anyLabels, params: anyParams, callback: anyCallback },
          ...{ priority: anyPriority, not_before: anyStart, concurrency: anyConcurrency },
        },
        { requiredKeys: [] },
      ),
      (fields) => {
        const given = JSON.parse(JSON.stringify(fields)) as Record<string, unknown>
        const options = graphOptions(given)
        expect(options !== undefined).toBe(Value.Check(GraphFields, given))
        if (options === undefined)
          expect(graphOptionsFault(given)).toMatch(
            /^(name|labels|params|priority|not_before|concurrency(\.group|\.limit|\.on_full)?|callback(\.url|\.events)?): expected /,
          )
        else expect(options).toEqual(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null)))
      },
    ),
    { numRuns: 2_000 },
  )
})

test('graphs without any share one object', () => {
  expect(graphOptions({ tasks: [] })).toBe(NO_GRAPH_OPTIONS)
  expect(graphOptions({ name: null, labels: null })).toBe(NO_GRAPH_OPTIONS)
})

describe('a refusal says which field, and what it may be', () => {
  const nameLimits = 'name: expected 1 to 200 characters, none of them a control character'
  const labelNames = 'labels: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got'
  test.each([
    [{ name: 7 }, 'name: expected string'],
    [{ name: '' }, nameLimits],
    [{ name: 'n'.repeat(201) }, nameLimits],
    [{ name: 'a\tb' }, nameLimits],
    [{ params: ['a'] }, 'params: expected object of parameters'],
    [{ params: { 'a b': 1 } }, 'params: expected names of 1 to 63 letters, digits, ".", "_", "/" or "-", got "a b"'],
    [{ params: labels(257) }, 'params: expected at most 256 parameters, got 257'],
    [{ params: { a: JSON.parse('['.repeat(200) + ']'.repeat(200)) } }, 'params: nested deeper than 200 levels'],
    [{ params: { a: 'x'.repeat(1024 * 1024) } }, 'params: expected less than 1048576 characters of JSON in all'],
    [{ labels: ['a'] }, 'labels: expected object of strings'],
    [{ labels: { a: 1 } }, 'labels: expected object of strings'],
    [{ labels: labels(65) }, 'labels: expected at most 64 labels, got 65'],
    [{ labels: { 'a b': '' } }, `${labelNames} "a b"`],
    [{ labels: { ['a'.repeat(64)]: '' } }, `${labelNames} "${'a'.repeat(64)}"`],
    [{ labels: { team: 'v'.repeat(257) } }, 'labels: expected values of at most 256 characters, got 257 in "team"'],
    [{ concurrency: 'deploy' }, 'concurrency: expected object'],
    [{ concurrency: { limit: 2 } }, 'concurrency.group: expected string of 1 to 200 characters'],
    [{ concurrency: { group: 'g'.repeat(201) } }, 'concurrency.group: expected string of 1 to 200 characters'],
    [{ concurrency: { group: 'g', limit: 1_001 } }, 'concurrency.limit: expected integer from 1 to 1000'],
    [
      { concurrency: { group: 'g', on_full: 'cancel' } },
      'concurrency.on_full: expected "wait", "cancel_oldest", "refuse"',
    ],
    [{ callback: 'http://a' }, 'callback: expected object'],
    [{ callback: {} }, 'callback.url: expected string'],
    [{ callback: { url: 'a' } }, 'callback.url: expected an http: or https: address'],
    [{ callback: { url: `http://${'a'.repeat(2_042)}` } }, 'callback.url: expected at most 2048 characters, got 2049'],
    [{ callback: { url: 'http://a', events: 'x' } }, 'callback.events: expected array of strings'],
    [
      { callback: { url: 'http://a', events: ['x'] } },
      'callback.events: expected names of graph_ended, task_failed, approval_asked',
    ],
  ])('%j', (fields, fault) => {
    expect(graphOptions(fields)).toBeUndefined()
    expect(graphOptionsFault(fields)).toBe(fault)
  })
})
