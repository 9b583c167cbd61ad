/** The labels in the values of `--label`. Pure. */

/** A comma ends a label only where the name of another one follows it, and no backslash stands before it. */
const BETWEEN_LABELS = /(?<!\\),\s*(?=[A-Za-z0-9._/-]{1,63}=)/

const ESCAPED_COMMA = /\\,/g

/** `['a=1,b=2', 'c=x,y', 'd=x\\,e=y']` are the labels `a=1`, `b=2`, `c=x,y`, `d=x,e=y`. */
export const labelsIn = (values: readonly string[]): string[] =>
  values.flatMap((value) => value.split(BETWEEN_LABELS)).map((label) => label.trim().replace(ESCAPED_COMMA, ','))
