/**
 * Variables with a placeholder for a secret: `{"placeholder_for": "api-token"}`, for programs that insist on a key. The proxy
 * replaces the text in headers of requests. Pure.
 */

/** A text, or the name of a secret for which the variable has a placeholder. */
export type VariableValue = string | { readonly placeholder_for: string }

type Variables = Readonly<Record<string, VariableValue>>

/** The text that a task has for a secret: always the same, and of use to that task only. */
export const placeholderText = (taskId: string, secret: string): string =>
  `taskmill-${new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([taskId, secret]))
    .digest('hex')
    .slice(0, 40)}`

/** The value of a variable as a task gets it. */
export const variableText = (taskId: string, value: VariableValue): string =>
  typeof value === 'string' ? value : placeholderText(taskId, value.placeholder_for)

/** The variables as a task gets them. */
export const withPlaceholders = (taskId: string, env: Variables): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, variableText(taskId, value)]))

/** The variables that have placeholders, with the names of the secrets. */
export const placeholdersIn = (env: Variables): readonly (readonly [variable: string, secret: string])[] =>
  Object.entries(env).flatMap(([name, value]) =>
    typeof value === 'string' ? [] : [[name, value.placeholder_for] as const],
  )
