/** How often callers have changed a live graph, and who. */
export interface GraphPatches {
  /** Rises by one with each patch. A graph that was never patched has 0. */
  readonly revision: number
  /** Names of tokens; absent if only the token of the service did it. */
  readonly by?: readonly string[]
}

/** The patches of a graph after one more, `by` the token of that name. */
export function patchedAgain(
  { revision, by: names = [] }: Partial<GraphPatches> = {},
  by: string | undefined,
): GraphPatches {
  const all = by === undefined || names.includes(by) ? names : [...names, by]
  return { revision: (revision ?? 0) + 1, ...(all.length > 0 && { by: all }) }
}
