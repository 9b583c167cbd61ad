import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { labelsIn } from '../../../adapter/commands/graphs.ts'

test.each([
  [['team=web'], ['team=web']],
  [
    ['team=web', 'env=prod'],
    ['team=web', 'env=prod'],
  ],
  [['team=web,env=prod'], ['team=web', 'env=prod']],
  [[' team=web , ci/run=7 '], ['team=web', 'ci/run=7']],
  [['who=Ada, Grace'], ['who=Ada, Grace']],
  [['who=Ada, Grace, team=web'], ['who=Ada, Grace', 'team=web']],
  [['list=a\\,b=c'], ['list=a,b=c']],
  [['list=a\\,b'], ['list=a,b']],
  [
    ['list=a,', 'x=,'],
    ['list=a,', 'x=,'],
  ],
  [['team'], ['team']],
  [[''], ['']],
])('%j is %j', (values, labels) => {
  expect(labelsIn(values)).toEqual(labels)
})

test('a value can be written, whatever it is', () => {
  const value = fc.string({ unit: fc.constantFrom('a', 'b', '=', ',', ' ', '/', 'é') }).map((text) => text.trim())
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), (values) => {
      const flags = values.map((text) => `key=${text.replaceAll(',', '\\,')}`)
      expect(labelsIn(flags)).toEqual(values.map((text) => `key=${text}`))
      expect(labelsIn([flags.join(',')])).toEqual(values.map((text) => `key=${text}`))
    }),
  )
})
