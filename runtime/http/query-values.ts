/** Values of query parameters. Throws 400 with what is expected. */
import { invalidInput } from '../refusal.ts'

export function wholeNumberOf(name: string, text: string, min: number, max: number): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw invalidInput(`invalid ${name} "${text}": expected a whole number from ${min} to ${max}`)
}

export function truthOf(name: string, text = 'false'): boolean {
  if (text === 'true' || text === '1' || text === '') return true
  if (text === 'false' || text === '0') return false
  throw invalidInput(`invalid ${name} "${text}": expected true or false`)
}
