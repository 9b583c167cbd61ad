/** The ancestors and the descendants of a box. */
export function kinOf(box: number, edges: readonly (readonly [from: number, to: number])[]): ReadonlySet<number> {
  const after = new Map<number, number[]>()
  const before = new Map<number, number[]>()
  const add = (map: Map<number, number[]>, key: number, value: number) => {
    const list = map.get(key)
    if (list === undefined) map.set(key, [value])
    else list.push(value)
  }
  for (const [from, to] of edges) {
    add(after, from, to)
    add(before, to, from)
  }
  const kin = new Set([box])
  for (const map of [after, before]) {
    const next = [box]
    const seen = new Set(next)
    for (let at = 0; at < next.length; at++) {
      for (const other of map.get(next[at]!) ?? []) {
        if (seen.has(other)) continue
        seen.add(other)
        kin.add(other)
        next.push(other)
      }
    }
  }
  return kin
}
