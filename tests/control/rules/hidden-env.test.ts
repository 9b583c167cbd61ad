/** Values of `env`: hidden wherever a runtime task may have them, and nothing else is touched. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { reportHiddenValues, shownInput, shownTask } from '../../../control/rules/hidden-env.ts'
import { refuse } from '../../../control/rules/report.ts'

describe('an input as it is shown', () => {
  test.each([
    ['a number', 1, 1],
    ['a list of variables in the place of the input', ['A=x'], '***'],
    ['a text, which may be JSON', '{"env":{"A":"x"}}', '***'],
    ['a list of executions', [{ program: 'a', env: { A: 'x' } }], '***'],
    ['a list as execution', { limits: {}, execution: [{ env: { A: 'x' } }] }, { limits: {}, execution: '***' }],
    ['a text as execution', { execution: '{"env":{"A":"x"}}' }, { execution: '***' }],
    ['an object as program', { program: { env: { A: 'x' } } }, { program: '***' }],
    ['an object in args', { execution: { args: ['a', { env: { A: 'x' } }] } }, { execution: { args: '***' } }],
    ['args', { execution: { args: ['a', 1] } }, { execution: { args: ['a', 1] } }],
    ['metadata that is named env', { metadata: { env: 'x' } }, { metadata: { env: 'x' } }],
    ['no env', { script: 'a' }, { script: 'a' }],
    ['null', { env: null, execution: { env: null } }, { env: null, execution: { env: null } }],
    ['flat', { script: 'a', env: { A: 'x', B: '' } }, { script: 'a', env: { A: '***', B: '***' } }],
    ['whole', { execution: { script: 'a', env: { A: 'x' } } }, { execution: { script: 'a', env: { A: '***' } } }],
    ['of a wrong type', { env: 'A=x' }, { env: '***' }],
    ['with values of wrong types', { env: { A: { b: 'x' }, B: 1 } }, { env: { A: '***', B: '***' } }],
    ['a list of variables', { execution: { env: ['A=x'] } }, { execution: { env: '***' } }],
  ])('%s', (_, input, shown) => {
    expect(shownInput('runtime', input)).toStrictEqual(shown as typeof input)
    expect(shownInput('mcp', input)).toBe(input)
  })

  test('holds no secret, whatever the names are, and is refused when it comes back', () => {
    const secret = 'a secret value'
    const env = fc.dictionary(fc.oneof(fc.constant('__proto__'), fc.string()), fc.constant(secret), { minKeys: 1 })
    fc.assert(
      fc.property(env, fc.boolean(), fc.constantFrom('runtime', 'runtime.script'), (env, isFlat, type) => {
        const task = { id: 'a', type, params: isFlat ? { env } : { execution: { env } } }
        const shown = shownTask(task)
        expect(JSON.stringify(shown)).not.toContain(secret)
        expect(() => reportHiddenValues([shown], refuse, 0, 1)).toThrow('a record of ours was sent back')
        expect(() => reportHiddenValues([task], refuse, 0, 1)).not.toThrow()
      }),
    )
  })

  test('holds no secret in any shape, and is refused when it comes back', () => {
    const env = { A: 'a secret value' }
    const shapes: ((value: unknown) => unknown)[] = [
      (value) => [value],
      (value) => JSON.stringify(value),
      (value) => ({ execution: value }),
      (value) => ({ execution: [value] }),
      (value) => ({ program: value }),
      (value) => ({ script: [value] }),
      (value) => ({ execution: { args: [value] } }),
    ]
    fc.assert(
      fc.property(fc.constantFrom(...shapes), fc.constantFrom('params', 'input'), (shape, field) => {
        const shown = shownTask({ id: 'a', type: 'runtime.command', [field]: shape({ env }) })
        expect(JSON.stringify(shown)).not.toContain('a secret value')
        expect(() => reportHiddenValues([shown], refuse, 0, 1)).toThrow('a record of ours was sent back')
      }),
    )
  })

  test.each(['shell', 'os.shell', 'os', 'cli-skills'])(
    'the env of a task of type %s is hidden, and nothing else',
    (type) => {
      const params = { command: 'a', args: ['***'], stdin: '***', env: { A: 'a secret value' } }
      const shown = shownTask({ id: 'a', type, params })
      expect(shown.params).toEqual({ ...params, env: { A: '***' } })
      expect(() => reportHiddenValues([shown], refuse, 0, 1)).toThrow('task a: params.env.A is "***"')
      expect(() => reportHiddenValues([{ id: 'a', type, params }], refuse, 0, 1)).not.toThrow()
      expect(shownInput('os', { env: ['A=x'] })).toEqual({ env: '***' })
    },
  )

  test.each(['shell', 'os', 'cli-skills', 'runtime.command'])(
    'holds no secret in place of the whole parameters of a task of type %s, and is refused when it comes back',
    (type) => {
      const env = { A: 'a secret value' }
      const placeholders: ((value: unknown) => unknown)[] = [
        (value) => ({ $literal: value }),
        (value) => ({ $from: 'b', path: '/none', default: value }),
        (value) => ({ $literal: { $literal: value } }),
      ]
      const fields = { command: 'a', env }
      const objects: unknown[] = [fields, { env: 'a secret value' }]
      const values = type === 'runtime.command' ? [...objects, [fields], JSON.stringify(fields)] : objects
      const inputs = [
        ...placeholders.flatMap((placeholder) => values.map(placeholder)),
        ...(type === 'runtime.command'
          ? placeholders.flatMap((placeholder) => values.map((value) => ({ execution: placeholder(value) })))
          : []),
        ...(type === 'runtime.command' ? [{ $literal: { execution: { $literal: fields } } }] : []),
      ]
      for (const params of inputs) {
        const task = { id: 'a', type, params }
        const shown = shownTask(task)
        expect(JSON.stringify(shown)).not.toContain('a secret value')
        expect(() => reportHiddenValues([shown], refuse, 0, 1)).toThrow('a record of ours was sent back')
        expect(() => reportHiddenValues([task], refuse, 0, 1)).not.toThrow()
      }
    },
  )

  test.each([[[1, { env: 'x' }]], ['text'], ['***'], [7]])(
    'parameters of local tasks may be any value: %j',
    (params) => {
      const task = { id: 'a', type: 'shell', params }
      expect(shownTask(task)).toBe(task)
      expect(() => reportHiddenValues([task], refuse, 0, 1)).not.toThrow()
    },
  )

  test('a placeholder in place of the whole parameters shows where the value comes from, and what is no env', () => {
    for (const input of [
      { $param: 'p' },
      { $from: 'b' },
      { $from: 'b', default: null },
      { $literal: { command: 'a' } },
    ]) {
      expect(shownInput('os', input)).toBe(input)
      expect(shownInput('runtime', input)).toBe(input)
    }
    const input = { $from: 'b', path: '/x', default: { command: 'a', env: { A: 'x' } } }
    expect(shownInput('os', input)).toEqual({ ...input, default: { command: 'a', env: { A: '***' } } })
  })

  test('a task without env is not copied', () => {
    const task = { id: 'a', type: 'runtime', params: { script: 'a' } }
    expect(shownTask(task)).toBe(task)
  })
})
