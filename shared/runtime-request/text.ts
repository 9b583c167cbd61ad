/** What texts of a request must be before the kernel or a file may see them. Pure. */
import { requestFault } from './fault.ts'

/** Characters of a caller's own text that an error repeats. */
const MAX_REPEATED_CHARACTERS = 64

/** Entries of a map of strings: metadata, labels. */
export const MAX_MAP_ENTRIES = 256
export const MAX_MAP_KEY_CHARACTERS = 256
export const MAX_MAP_VALUE_CHARACTERS = 65_536

/** A name of the caller's as an error repeats it: one line, not too long. */
export function shortened(name: string): string {
  const cut = name.length > MAX_REPEATED_CHARACTERS ? `${name.slice(0, MAX_REPEATED_CHARACTERS)}...` : name
  return /^[\w.-]+$/.test(cut) ? cut : JSON.stringify(cut.toWellFormed())
}

/** Nothing there, or nothing but spaces. */
export const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ''

/** Whether `checkText` accepts a text. */
export const isSound = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Throws `RequestFault` where the kernel would see the text end early, or where it would not arrive as it was sent. */
export function checkText(path: string, text: string): void {
  if (text.includes('\0')) throw requestFault(`${path} cannot contain NUL characters`)
  if (!text.isWellFormed()) throw requestFault(`${path} is not valid Unicode: it contains half of a surrogate pair`)
}

/** Throws `RequestFault` for a map with more or longer entries than are kept with a task. */
export function checkTextMap(path: string, map: Readonly<Record<string, string>>): void {
  const entries = Object.entries(map)
  if (entries.length > MAX_MAP_ENTRIES) {
    throw requestFault(`${path} has ${entries.length} entries (at most ${MAX_MAP_ENTRIES} are kept)`)
  }
  for (const [key, value] of entries) {
    if (key.length > MAX_MAP_KEY_CHARACTERS) {
      throw requestFault(`${path}: a key has ${key.length} characters (at most ${MAX_MAP_KEY_CHARACTERS})`)
    }
    if (value.length > MAX_MAP_VALUE_CHARACTERS) {
      throw requestFault(
        `${path}.${shortened(key)} has ${value.length} characters (at most ${MAX_MAP_VALUE_CHARACTERS})`,
      )
    }
  }
}
