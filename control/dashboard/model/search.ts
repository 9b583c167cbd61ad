/** A search: every word must occur. Names that begin with the query come first. */

export interface Found<T> {
  readonly item: T
  readonly score: number
}

/** The best matches of `query` among `items`, at most `limit`, in order of fit and then of their own order. */
export function search<T>(items: readonly T[], query: string, textOf: (item: T) => string, limit: number): T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return items.slice(0, limit)
  const found = items.flatMap((item): Found<T>[] => {
    const text = textOf(item).toLowerCase()
    let score = 0
    for (const word of words) {
      const at = text.indexOf(word)
      if (at < 0) return []
      score += at === 0 ? 0 : /[\s/._-]/.test(text[at - 1]!) ? 1 : 2
    }
    return [{ item, score }]
  })
  return found
    .sort((a, b) => a.score - b.score)
    .slice(0, limit)
    .map(({ item }) => item)
}
