/**
 * Times of the page that measurements read: `performance.getEntriesByName('taskmill:drawn')`. They are those of the place
 * where one is: of a graph, or of the list. Of each name only the newest mark is kept, since a page stays open for long.
 */

/** `data`: the answer of the service is read. `drawn`: the first frame that shows it is painted. */
type Moment = 'taskmill:data' | 'taskmill:drawn'

export function mark(moment: Moment): void {
  performance.clearMarks(moment)
  performance.mark(moment)
}

/** To be called from a layout effect: marks the moment after the next frame. */
export const markDrawn = (): void => void requestAnimationFrame(() => setTimeout(() => mark('taskmill:drawn')))
