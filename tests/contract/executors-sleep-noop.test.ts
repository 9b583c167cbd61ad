/** The tools sleep and noop, and tools that do not exist. Source: contract, Executors and section 5. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Control, startControl } from '../support/control.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const badInput = (error: unknown) => ({
  status: 'failed',
  error,
  runtime: { status: 'failed', error: { code: 'invalid_input' } },
})

describe('sleep', () => {
  test('waits for duration_ms and says slept_ms', async () => {
    const task = await control.run({ type: 'sleep', params: { duration_ms: 120 } })
    expect(task).toMatchObject({ status: 'success', result: { slept_ms: 120 } })
    expect(Date.parse(task.finished_at!) - Date.parse(task.started_at!)).toBeGreaterThanOrEqual(118)
  })

  test.each([[undefined], [null], [{}], [{ duration_ms: null }], [{ duration_ms: 0 }]])(
    'without duration_ms sleeps 0: %j',
    async (params) => {
      const task = await control.run({ type: 'sleep', params })
      expect(task).toMatchObject({ status: 'success', result: { slept_ms: 0 } })
    },
  )

  test.each([[600_001], [-1], ['100'], [true], [[1]], [1e300]])(
    'takes 0 to 600,000 and fails at once otherwise: %j',
    async (duration_ms) => {
      const task = await control.run({ type: 'sleep', params: { duration_ms } })
      expect(task).toMatchObject(badInput(expect.stringMatching(/^parse sleep params: .*duration_ms/)))
    },
  )

  test('of 600,000 begins, and its timeout ends it', async () => {
    const task = await control.run({ type: 'sleep', params: { duration_ms: 600_000 }, timeout: 100 })
    expect(task).toMatchObject({
      status: 'failed',
      error: 'task timed out after 100ms',
      runtime: { error: { code: 'timeout' } },
    })
    expect(task).not.toHaveProperty('result')
  })
})

describe('noop', () => {
  test.each([[undefined], [null], [{}], [{ message: null }], [{ message: '' }]])(
    'always answers a message, if only "": %j',
    async (params) => {
      const task = await control.run({ type: 'noop', params })
      expect(task).toMatchObject({ status: 'success', attempt: 1 })
      expect(task.result).toEqual({ ok: true, message: '' })
    },
  )

  test('answers the message it was given', async () => {
    const message = 'grün € 😀 \n "quoted" \u0000'
    expect((await control.run({ type: 'noop', params: { message } })).result).toEqual({ ok: true, message })
  })

  test.each([
    { type: 'os', tool_name: 'noop' },
    { type: 'os', tool_name: 'os.noop' },
    { type: 'os.noop' },
    { type: 'noop' },
  ])('may be named as %j', async (name) => {
    const task = await control.run({ ...name, input: { message: 'same' } })
    expect(task).toMatchObject({
      type: 'os',
      tool_name: 'noop',
      execution_category: 'os',
      status: 'success',
      result: { message: 'same' },
    })
  })
})

describe('os with an unknown tool', () => {
  test.each(['x', 'Noop', 'noop ', 'constructor', '__proto__', 'runtime.command', 'os.os.noop'])(
    'is accepted and fails when run: %s',
    async (tool_name) => {
      const task = await control.run({ type: 'os', tool_name })
      expect(task).toMatchObject(badInput(expect.stringMatching(/^unknown os tool ".+" \(available: .+\)$/)))
      expect(task.attempt).toBe(1)
    },
  )

  test('names it, and those there are, sorted', async () => {
    const { error } = await control.run({ type: 'os', tool_name: 'x' })
    expect(error).toStartWith('unknown os tool "x" (available: ')
    const available = /\(available: (.*)\)$/.exec(error!)![1]!.split(', ')
    expect(available).toEqual([...available].sort())
    for (const tool of ['file', 'http', 'noop', 'shell', 'sleep']) expect(available).toContain(tool)
  })

  test.each([{}, { tool_name: '' }, { tool_name: null }])('is one without a tool_name, too: %j', async (tool) => {
    const task = await control.run({ type: 'os', ...tool })
    expect(task).toMatchObject(badInput(expect.stringMatching(/^unknown os tool "" \(available: /)))
  })
})
