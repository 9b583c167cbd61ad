import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parametersIn, withParameters } from '../../../adapter/graph-file/parameters.ts'

const set = (graph: string, ...given: string[]) =>
  new TextDecoder().decode(withParameters(new TextEncoder().encode(graph), parametersIn(given), 'g.json'))
const refusal = (graph: string, ...given: string[]) => {
  try {
    return set(graph, ...given)
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`
  }
}

const GRAPH = '{"params": {"version": null, "jobs": 2}, "tasks": []}'

describe('a value', () => {
  test.each([
    [['version=1.10'], { version: '1.10', jobs: 2 }],
    [['version='], { version: '', jobs: 2 }],
    [['version=a=b,c:=d\n'], { version: 'a=b,c:=d\n', jobs: 2 }],
    [['jobs:=4', 'version:={"a": [null]}'], { version: { a: [null] }, jobs: 4 }],
    [['jobs:=4', 'jobs=many'], { version: null, jobs: 'many' }],
    [['jobs:=null'], { version: null, jobs: null }],
  ])('%j makes the parameters %j', (given, params) => {
    expect(JSON.parse(set(GRAPH, ...given))).toEqual({ params, tasks: [] })
  })

  test('without --set the graph stays as it is written', () => {
    expect(set('{"tasks": [ ')).toBe('{"tasks": [ ')
  })

  test('as text is that text, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(JSON.parse(set(GRAPH, `version=${text}`)).params.version).toBe(text)
        expect(JSON.parse(set(GRAPH, `version:=${JSON.stringify(text)}`)).params.version).toBe(text)
      }),
    )
  })
})

describe('refused', () => {
  test.each([
    ['version', 'UsageError: invalid --set version: expected name=value, or name:=json'],
    ['=1', 'UsageError: invalid --set =1: expected name=value, or name:=json'],
    [':=1', 'UsageError: invalid --set :=1: expected name=value, or name:=json'],
    ['jobs:=two', 'UsageError: invalid --set jobs:=two: this is no JSON (jobs=two gives it as text)'],
    ['jobs:=1e999', 'UsageError: invalid --set jobs:=1e999: Infinity is no number of JSON'],
    [
      'versoin=1',
      'UsageError: unknown parameter "versoin" (did you mean "version"?) (the graph declares: version, jobs)',
    ],
    ['__proto__=1', 'UsageError: unknown parameter "__proto__" (the graph declares: version, jobs)'],
  ])('%s', (given, message) => {
    expect(refusal(GRAPH, given)).toBe(message)
  })

  test('for a graph that declares none, or is none', () => {
    expect(refusal('{"tasks": []}', 'a=1')).toBe('UsageError: unknown parameter "a" (the graph declares none)')
    expect(refusal('{"params": [1]}', '0=1')).toBe('UsageError: unknown parameter "0" (the graph declares none)')
    for (const text of ['[]', '{"tasks": [ ', 'null']) {
      expect(refusal(text, 'a=1')).toBe('CallFailed: g.json is no JSON object, so --set has nothing to replace')
    }
  })

  test('for a graph with numbers that would be rounded', () => {
    expect(refusal('{"params": {"a": 1}, "tasks": [{"timeout": 12345678901234567890}]}', 'a=1')).toBe(
      'CallFailed: g.json: tasks[0].timeout: 12345678901234567000 is too large to be exact: write it as text, in quotes',
    )
  })
})
