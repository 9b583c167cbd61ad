import { describe, expect, test } from 'bun:test'
import { expectationsIn, withScope } from '../../../adapter/follow/graph-file.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
const scoped = (text: string) => new TextDecoder().decode(withScope(bytes(text)))

describe('the scope', () => {
  test.each([
    ['{"tasks": []}', '{"scope": "graph", "tasks": []}'],
    ['\n { "tasks": [] }\n', '\n {"scope": "graph",  "tasks": [] }\n'],
    ['{}', '{"scope": "graph"}'],
    [
      '{"tasks": [{"timeout": 12345678901234567890}]}',
      '{"scope": "graph", "tasks": [{"timeout": 12345678901234567890}]}',
    ],
  ])('is added to %j', (text, expected) => {
    expect(scoped(text)).toBe(expected)
    expect(JSON.parse(scoped(text))).toEqual({ ...JSON.parse(text), scope: 'graph' })
  })

  test.each(['{"scope": null, "tasks": []}', '{"scope": "graph"}', '[]', 'null', '{"tasks": [', ''])(
    '%j stays as it is',
    (text) => {
      expect(scoped(text)).toBe(text)
    },
  )
})

test('annotations tell what is expected', () => {
  const tasks = [
    { id: 'a', annotations: { title: 'Does it', expect: 'failed', attempts: '2', other: 'x' } },
    { id: 'b' },
    { id: 'c', annotations: { title: 7 } },
    'no task',
  ]
  expect([...expectationsIn(bytes(JSON.stringify({ tasks })))]).toEqual([
    ['a', { title: 'Does it', expect: 'failed', attempts: 2 }],
    ['c', {}],
  ])
  for (const text of ['', 'null', '{"tasks": {}}', '[']) expect(expectationsIn(bytes(text)).size).toBe(0)
})
