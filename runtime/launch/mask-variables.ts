/**
 * Texts to mask in the output of a task, on their way to its launcher: in variables of its environment, in hexadecimal, since
 * others can read arguments. The launcher takes them out before the task gets the rest. Pure. The other side of it is
 * c/supervise/masked-logs.c.
 */
import type { Environment } from './launcher-host.ts'

const PREFIX = 'TASKMILL_MASK_'

/** `env` with the texts. Variables of the task whose names they need are left out. */
export function withMaskVariables(env: Environment, texts: readonly Buffer[]): Record<string, string> {
  if (texts.length === 0) return { ...env }
  return Object.assign(
    withoutMaskVariables(env),
    Object.fromEntries(texts.map((text, i) => [`${PREFIX}${i}`, text.toString('hex')])),
  )
}

export const isMaskVariable = (name: string): boolean => name.startsWith(PREFIX)

export const withoutMaskVariables = (env: Environment): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !isMaskVariable(name)))

/** The texts, if there are `count`; else undefined. */
export function maskTextsIn(env: Environment, count: number): Buffer[] | undefined {
  const values = Object.entries(env).flatMap(([name, value]) => (isMaskVariable(name) ? [value] : []))
  const isSound = values.length === count && values.every((value) => /^(?:[0-9a-f]{2})+$/.test(value))
  return isSound ? values.map((value) => Buffer.from(value, 'hex')) : undefined
}
