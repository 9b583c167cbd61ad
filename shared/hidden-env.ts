/**
 * Values of `env` in records and answers: each is shown as `***`, as it may be a secret. Pure.
 *
 * A submitted `***` is refused by both services: it means that a record was sent back, and the task would run without
 * its secrets.
 */

/** Stands for a value that is not shown. */
export const HIDDEN_VALUE = '***'

/** `env` with its names alone. Anything that is no object is hidden whole. */
export function hiddenEnv(env: unknown): unknown {
  if (env === undefined || env === null) return env
  if (typeof env !== 'object' || Array.isArray(env)) return HIDDEN_VALUE
  return Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN_VALUE]))
}

/** The first name in `env` whose value is hidden, `""` where all of `env` is; undefined when nothing is. */
export function nameOfHidden(env: unknown): string | undefined {
  if (env === HIDDEN_VALUE) return ''
  if (typeof env !== 'object' || env === null) return undefined
  return Object.entries(env).find(([, value]) => value === HIDDEN_VALUE)?.[0]
}

/** Why the value at `path` is refused. */
export const hiddenValueText = (path: string): string =>
  `${path} is "${HIDDEN_VALUE}": a record of ours was sent back, and records hide the values of env (send the value itself)`
