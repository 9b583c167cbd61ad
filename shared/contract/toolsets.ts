/** The sets of tools that `POST /mcp` offers. Models read each tool in each conversation, so callers choose the sets. Pure. */

/** In the order in which tools are listed. The first is the default. */
export const TOOLSETS = ['graphs', 'schedules', 'live'] as const
export type Toolset = (typeof TOOLSETS)[number]

/** Stands for all of them. */
const ALL = 'all'

/** What a caller may write. */
export const TOOLSET_WORDS = [...TOOLSETS, ALL] as const

/** The sets in a text with commas between them, or the first that does not exist. */
export function toolsetsIn(given: string): readonly Toolset[] | { readonly unknown: string } {
  const words = given.split(',').map((word) => word.trim())
  const unknown = words.find((word) => !(TOOLSET_WORDS as readonly string[]).includes(word))
  if (unknown !== undefined) return { unknown }
  return TOOLSETS.filter((name) => words.includes(name) || words.includes(ALL))
}

/** What follows `/mcp` in an address. */
export const toolsetQuery = (toolsets: readonly Toolset[] = []): string =>
  toolsets.length === 0 ? '' : `?toolsets=${toolsets.join(',')}`
