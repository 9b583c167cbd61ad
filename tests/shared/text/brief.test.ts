/** Answers in brief: never longer than their room, whatever a task printed. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { briefTask, briefTasks, MAX_BRIEF_CHARACTERS, type NextCalls } from '../../../shared/text/brief.ts'

const calls: NextCalls = {
  output: (id) => `logs ${id}`,
  wait: (id) => `wait ${id}`,
  approve: (id) => `approve ${id}`,
}

test('a task that went well has at most MAX_BRIEF_CHARACTERS, and the end of its output', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 1_000 }), fc.nat(1_000), (text, length) => {
      const stdout = `${text}${'y'.repeat(length)}.`
      const brief = briefTask({ id: 'a', status: 'success', result: { stdout } }, { calls })
      expect(JSON.stringify(brief).length).toBeLessThanOrEqual(MAX_BRIEF_CHARACTERS)
      const output = brief.output as string
      if (output === stdout) expect(brief.next).toBeUndefined()
      else expect([output[0], stdout.endsWith(output.slice(1)), brief.next]).toEqual(['…', true, 'logs a'])
    }),
  )
})

test('many tasks share the room of three', () => {
  const tasks = Array.from({ length: 30 }, (_, i) => ({
    ...{ id: `t${i}`, status: 'success' as const },
    result: { stdout: 'x'.repeat(500) },
  }))
  const shown = briefTasks(tasks, { calls })
  expect(shown.length).toBe(20)
  expect(JSON.stringify(shown).length).toBeLessThanOrEqual(MAX_BRIEF_CHARACTERS * 3 + 21)
})

test('a failure shows the standard error first, a result without text is shown as it is', () => {
  const failed = { id: 'a', status: 'failed' as const, error: 'e', result: { stdout: 'out', stderr: 'err' } }
  expect(briefTask(failed, { calls })).toEqual({ id: 'a', status: 'failed', error: 'e', output: 'err', next: 'logs a' })
  expect(briefTask({ id: 'a', status: 'success', result: { n: 1 } }, { calls }).output).toEqual({ n: 1 })
  expect(briefTask({ id: 'a', status: 'success', result: { stdout: '' } }, { calls })).toEqual({
    id: 'a',
    status: 'success',
  })
})
