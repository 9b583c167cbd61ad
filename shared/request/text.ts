/** Checks texts of a request that go to the kernel or into files. Pure. */
import { requestFault } from './fault.ts'

/** Characters of a caller's text in an error. */
const MAX_REPEATED_CHARACTERS = 64

/** Entries of a map of strings: metadata, labels. */
export const MAX_MAP_ENTRIES = 256
export const MAX_MAP_KEY_CHARACTERS = 256
export const MAX_MAP_VALUE_CHARACTERS = 65_536

/** A caller's name for an error text: on one line, shortened. */
export function shortened(name: string): string {
  const cut = name.length > MAX_REPEATED_CHARACTERS ? `${name.slice(0, MAX_REPEATED_CHARACTERS)}...` : name
  return /^[\w.-]+$/.test(cut) ? cut : JSON.stringify(cut.toWellFormed())
}

/** Absent, empty or only white space. */
export const isBlank = (text: string | undefined): boolean => text === undefined || text.trim() === ''

/** Whether `checkText` accepts a text. */
export const isSound = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

/** Throws `RequestFault` for NUL, which ends texts of the kernel, and for text that UTF-8 cannot encode. */
export function checkText(path: string, text: string): void {
  if (text.includes('\0')) throw requestFault(`${path} cannot contain NUL characters`)
  checkUnicode(path, text)
}

/** Throws `RequestFault` for text that UTF-8 cannot encode. */
export function checkUnicode(path: string, text: string): void {
  if (!text.isWellFormed()) throw requestFault(`${path} is not valid Unicode: it contains half of a surrogate pair`)
}

/** Throws `RequestFault` for a map with too many or too long entries. */
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
