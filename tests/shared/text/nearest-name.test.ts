import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { boundedDistance, MAX_COMPARED_CHARACTERS, nearestName } from '../../../shared/text/nearest-name.ts'

const TASK = ['id', 'type', 'tool_name', 'params', 'input', 'depends_on', 'retry', 'timeout', 'annotations']
const LIMITS = ['wall_time_ms', 'cpu_time_sec', 'memory_bytes', 'pids_max', 'stdout_max_bytes', 'stderr_max_bytes']

test.each([
  ['depend_on', TASK, 'depends_on'],
  ['dependsOn', TASK, 'depends_on'],
  ['DEPENDS-ON', TASK, 'depends_on'],
  ['timeout_ms', TASK, 'timeout'],
  ['paramz', TASK, 'params'],
  ['tpye', TASK, 'type'],
  ['colour', TASK, undefined],
  ['x', TASK, undefined],
  ['', TASK, undefined],
  ['memory', LIMITS, 'memory_bytes'],
  ['pids', LIMITS, 'pids_max'],
  ['walltime', LIMITS, 'wall_time_ms'],
  ['duration', ['duration_ms'], 'duration_ms'],
  ['profil', ['profile', 'rootfs'], 'profile'],
  ['stats', ['status', 'type'], 'status'],
  ['a'.repeat(MAX_COMPARED_CHARACTERS + 1), ['a'.repeat(MAX_COMPARED_CHARACTERS)], undefined],
])('%s of %j is %p', (name, known, nearest) => {
  expect(nearestName(name, known)).toBe(nearest!)
})

test('a synonym counts where the field is known, in any spelling', () => {
  const synonyms = { max_retries: 'retry' }
  expect(nearestName('maxRetries', TASK, synonyms)).toBe('retry')
  expect(nearestName('max_retries', ['size'], synonyms)).toBeUndefined()
  expect(nearestName('constructor', TASK, synonyms)).toBeUndefined()
})

/** The definition, without bound or economy. */
function distance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const [x, y] = [a.slice(0, -1), b.slice(0, -1)]
  const found = [distance(x, b) + 1, distance(a, y) + 1, distance(x, y) + (a.at(-1) === b.at(-1) ? 0 : 1)]
  if (a.length > 1 && b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1)) {
    found.push(distance(a.slice(0, -2), b.slice(0, -2)) + 1)
  }
  return Math.min(...found)
}

const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })

test('the distance is that of its definition, or nothing beyond the bound', () => {
  fc.assert(
    fc.property(word, word, fc.nat(5), (a, b, bound) => {
      const exact = distance(a, b)
      expect(boundedDistance(a, b, bound)).toBe((exact <= bound ? exact : undefined) as number)
    }),
  )
})

test('one edit of a known name of five letters or more is found again, and a near name is a known one', () => {
  fc.assert(
    fc.property(fc.constantFrom(...LIMITS), fc.nat(20), fc.constantFrom('', 'q', 'zz'), (name, at, inserted) => {
      const i = at % name.length
      const edited = name.slice(0, i) + inserted + name.slice(i + 1)
      const nearest = nearestName(edited, LIMITS)
      expect(LIMITS).toContain(nearest!)
    }),
  )
  fc.assert(
    fc.property(fc.string({ maxLength: 80 }), (name) => {
      const nearest = nearestName(name, TASK)
      if (nearest !== undefined) expect(TASK).toContain(nearest)
    }),
  )
})
