/**
 * What is paused: graphs, types of tasks, the whole service. Pure.
 *
 * Nothing new of what is paused starts. What runs goes on.
 */
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Pause } from '../rules/pause.ts'
import type { Graph, Task } from './graph.ts'

/** The key of the pause of the whole service. The others are those of types: a category, or `category.tool`. */
export const SERVICE = ''

export type PausedTypes = ReadonlyMap<string, Pause>

/** The pauses of types and of the service. That of a graph is in the graph. */
export interface KeptPauses {
  readonly all: PausedTypes
  /** Called with each key whose pause has begun or ended, also by another replica. */
  onChange: (key: string) => void
  /** Begins a pause, or ends it. Resolves once that is kept. Rejects with 503. */
  set(key: string, pause: Pause | undefined): Promise<void>
}

/** What keeps a task from starting: its graph, or the key of a pause. */
export interface Held {
  readonly by: Graph | string
  readonly pause: Pause
}

/** Undefined if `task` is not paused. */
export function heldBy({ graph, type, toolName }: Task, paused: PausedTypes): Held | undefined {
  if (graph.pause !== undefined) return { by: graph, pause: graph.pause }
  if (paused.size === 0) return undefined
  for (const by of [SERVICE, type, `${type}.${toolName}`]) {
    const pause = paused.get(by)
    if (pause !== undefined) return { by, pause }
  }
  return undefined
}

/** What is paused, by whom and why, in words. */
export function pauseText({ by: held, pause: { since, by, why } }: Held): string {
  const what = typeof held !== 'string' ? 'the graph' : held === SERVICE ? 'the service' : `type ${held}`
  return `${what} is paused since ${isoTime(since)}${by === undefined ? '' : ` by ${by}`}${why === undefined ? '' : `: ${why}`}`
}
