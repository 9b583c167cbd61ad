/** The time before which a task does not start (`not_before`). Pure. */
import type { NotBefore } from '../../shared/contract/start-order.ts'

/** Whether a value of the right form is a delay, or a time that exists: 30 February has the form of one. */
export function isNotBefore(value: unknown): boolean {
  if (typeof value !== 'string') return true
  const [year, month, day] = value.split(/[-Tt]/, 3).map(Number) as [number, number, number]
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** Milliseconds since 1970. A delay begins at `from`. */
export const startOf = (notBefore: NotBefore, from: number): number =>
  typeof notBefore === 'number' ? from + notBefore : Date.parse(notBefore)
