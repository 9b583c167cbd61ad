/**
 * The schema that holds every table of ours. It holds one cluster of control services. A process uses one schema, which it
 * learns from its settings before it opens the database: `SCHEMA` may stand in statements that are made later.
 */
export let SCHEMA = 'taskmill'

/** `name` is of the form that `--database-schema` allows, and so needs no quotes. */
export function useSchema(name: string): void {
  SCHEMA = name
}
