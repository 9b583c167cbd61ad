/** Ids of attempts in the runtime service. Pure: a repeated request gets the same id. */

/** Ids that the runtime service accepts. */
const MAX_CHARACTERS = 128
const NOT_ALLOWED = /[^A-Za-z0-9_.-]/g

/** Hexadecimal digits of the digest that replaces removed characters. */
const DIGEST_DIGITS = 16

/** `<task>-<graph>-<attempt>`. Unique, also if the id of the task has to be shortened. */
export function runtimeTaskId(taskId: string, graphId: string, attempt: number): string {
  const tail = `-${fitting(graphId, 64)}-${attempt}`
  return fitting(taskId, MAX_CHARACTERS - tail.length) + tail
}

/** `name` if it is valid in an id, else its valid characters and a digest, so that different names stay different. */
function fitting(name: string, room: number): string {
  const allowed = name.replace(NOT_ALLOWED, '_')
  if (allowed === name && name.length <= room) return name
  const digest = new Bun.CryptoHasher('sha256').update(name).digest('hex').slice(0, DIGEST_DIGITS)
  return `${allowed.slice(0, room - DIGEST_DIGITS - 1)}-${digest}`
}
