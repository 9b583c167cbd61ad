/** `${NAME}` and `${NAME:-default}` in texts of a configuration, so that it need not hold secrets. Pure. */

export type Environment = Readonly<Record<string, string | undefined>>

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/** `text` with every reference replaced. `missing` gets the name of a variable that is not set and has no default. */
export const withVariables = (text: string, env: Environment, missing: (name: string) => never): string =>
  text.replace(REFERENCE, (_, name: string, otherwise: string | undefined) => {
    // As in a shell, a variable that is set and empty counts as not set where there is a default.
    const value = otherwise === undefined ? env[name] : env[name] || otherwise
    return value ?? missing(name)
  })
