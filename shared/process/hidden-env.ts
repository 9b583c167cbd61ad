/**
 * Values of `env` in records and answers are shown as `***`, because they may be secrets. Pure.
 *
 * Both services refuse a submitted `***`: it comes from a record that was sent back, and the task would run without its
 * secrets.
 */

/** Stands for a hidden value. */
export const HIDDEN_VALUE = '***'

/** `env` with hidden values; itself where it has none. An `env` that is not an object is hidden as a whole. */
export function hiddenEnv(env: unknown): unknown {
  if (env === undefined || env === null) return env
  if (typeof env !== 'object' || Array.isArray(env)) return HIDDEN_VALUE
  const names = Object.keys(env)
  return names.length === 0 ? env : Object.fromEntries(names.map((name) => [name, HIDDEN_VALUE]))
}

/** The first name in `env` whose value is `***`; `""` if `env` itself is; undefined if none is. */
export function nameOfHidden(env: unknown): string | undefined {
  if (env === HIDDEN_VALUE) return ''
  if (typeof env !== 'object' || env === null) return undefined
  return Object.entries(env).find(([, value]) => value === HIDDEN_VALUE)?.[0]
}

/** The error text for a hidden value at `path`. */
export const hiddenValueText = (path: string): string =>
  `${path} is "${HIDDEN_VALUE}": a record of ours was sent back, and records hide the values of env (send the value itself)`
