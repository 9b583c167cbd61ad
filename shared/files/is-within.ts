/** Whether one path contains another. Pure. */

/** Whether `path` is `top` or lies below it; both are absolute and without links. */
export const isWithin = (path: string, top: string): boolean => `${path}/`.startsWith(`${top.replace(/\/$/, '')}/`)
