/** Goal: each type has one executor. Method: a registry with executors that do nothing. */
import { describe, expect, test } from 'bun:test'
import type { Executor } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'

const executorOf = (type: string): Executor => ({ type, execute: () => null })

describe('the registry', () => {
  test('gives the executor of a type, and names the types that a graph may use', () => {
    const [os, mcp] = [executorOf('os'), executorOf('mcp')]
    const registry = new ExecutorRegistry([os])
    registry.register(mcp)
    expect(registry.get('os')).toBe(os)
    expect(registry.get('mcp')).toBe(mcp)
    expect(registry.types).toEqual(new Set(['os', 'mcp']))
  })

  test('knows no type that was not registered', () => {
    const registry = new ExecutorRegistry([executorOf('os')])
    for (const type of ['', 'OS', 'shell', 'constructor', '__proto__']) expect(registry.get(type)).toBeUndefined()
    expect(new ExecutorRegistry().types).toEqual(new Set())
  })

  test('refuses a second executor of a type and keeps the first', () => {
    const first = executorOf('os')
    const registry = new ExecutorRegistry([first])
    expect(() => registry.register(executorOf('os'))).toThrow('an executor of type os is registered already')
    expect(() => new ExecutorRegistry([executorOf('a'), executorOf('a')])).toThrow('type a is registered already')
    expect(registry.get('os')).toBe(first)
  })
})
