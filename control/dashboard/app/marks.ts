/**
 * Marks times of the page for measurements: `performance.getEntriesByName('taskmill:drawn')`. The marks belong to the
 * open place, which is a graph or the list. Only the newest mark of each name is kept, because a page stays open for
 * long.
 */

import { useLayoutEffect } from 'preact/hooks'

/** `data`: the answer of the service is read. `drawn`: the first frame that shows it is painted. */
type Moment = 'taskmill:data' | 'taskmill:drawn'

export function mark(moment: Moment): void {
  performance.clearMarks(moment)
  performance.mark(moment)
}

/** Marks the first frame of a view. Called from it. */
export const useMarkDrawn = (): void => useLayoutEffect(markDrawn, [])

/** Marks the moment after the next frame. Called from a layout effect. */
export const markDrawn = (): void => void requestAnimationFrame(() => setTimeout(() => mark('taskmill:drawn')))
