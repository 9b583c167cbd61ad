/** Replaces `${NAME}` and `${NAME:-default}` in a configuration, so that it need not contain secrets. Pure. */

export type Environment = Readonly<Record<string, string | undefined>>

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** Replaces all references in `text`. `missing` gets the name of an unset variable without a default. */
export const withVariables = (text: string, env: Environment, missing: (name: string) => never): string =>
  text.replace(REFERENCE, (_, name: string, otherwise: string | undefined) => {
    // As in a shell, the default also replaces an empty value.
    const value = otherwise === undefined ? env[name] : env[name] || otherwise
    return value ?? missing(name)
  })
