/** The name of an attempt in the runtime service. Pure: whoever forgets that it was sent makes the same one again. */

/** What the runtime service takes as an id. */
const MAX_CHARACTERS = 128
const NOT_ALLOWED = /[^A-Za-z0-9_.-]/g

/** Hexadecimal digits that stand for what of a name had to go. */
const DIGEST_DIGITS = 16

/** `<task>-<graph>-<attempt>`. Different attempts have different ids, also where the name of a task does not fit. */
export function runtimeTaskId(taskId: string, graphId: string, attempt: number): string {
  const tail = `-${fitting(graphId, 64)}-${attempt}`
  return fitting(taskId, MAX_CHARACTERS - tail.length) + tail
}

/** `name` if it may be part of an id, else as much of it as may be, with a digest so that no two become one. */
function fitting(name: string, room: number): string {
  const allowed = name.replace(NOT_ALLOWED, '_')
  if (allowed === name && name.length <= room) return name
  const digest = new Bun.CryptoHasher('sha256').update(name).digest('hex').slice(0, DIGEST_DIGITS)
  return `${allowed.slice(0, room - DIGEST_DIGITS - 1)}-${digest}`
}
