/** The ids of the children of a task with `for_each`: `<id>[0]`, `<id>[1]` and so on. Pure. */

/** The id of a child. */
export const childId = (parentId: string, index: number): string => `${parentId}[${index}]`

const CHILD_ID = /^([\s\S]+)\[(?:0|[1-9]\d*)\]$/

/** The id of the task that a task with this id would be a child of; undefined for an id that no child can have. */
export const parentIdOf = (id: string): string | undefined => (id.endsWith(']') ? CHILD_ID.exec(id)?.[1] : undefined)
