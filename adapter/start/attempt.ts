/** What an attempt to start a service came to, and the words that attempts have in common. */

export type StartedBy = 'compose' | 'container' | 'start'

export type Attempt =
  | {
      readonly isStarted: true
      /** Absent when what was to be started ran already. */
      readonly by?: StartedBy
      readonly note: string
      /** Commands that help when the service does not come up. */
      readonly hints: readonly string[]
      /** Resolves with the story, last words included, when what was started ends. */
      readonly ended?: Promise<string>
      /** What there is to say when the time is up; '' when nothing. */
      diagnose?(): Promise<string>
      /** Lets go of what looks after the started service; the service stays. */
      release?(): void
    }
  | { readonly isStarted: false; readonly note: string; readonly hints: readonly string[] }

export const failed = (note: string, hints: readonly string[] = []): Attempt => ({ isStarted: false, note, hints })

/** `word` as a shell reads it back. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** A command line that one can paste. */
export const commandLine = (...words: readonly string[]): string => words.map(quoted).join(' ')

/** Lines of a service's output that a note repeats, and the characters of each. */
const LAST_LINES = 5
const MAX_LINE_LENGTH = 500

/** The last lines of what a service wrote, without colours; '' when it wrote nothing. */
export function lastLines(output: string): string {
  const lines = plainLines(output).slice(-LAST_LINES)
  return lines.map((line) => (line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)}...` : line)).join('\n')
}

/** Lines that say something, as text: without terminal sequences, and with the last of those that overwrote each other. */
export function plainLines(output: string): string[] {
  return output
    .split('\n')
    .map((line) => withoutControls(line).trim())
    .filter((line) => line !== '')
}

function withoutControls(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal sequences are control characters
  const plain = line.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '').replace(/\r+$/, '')
  return plain.slice(plain.lastIndexOf('\r') + 1).replace(/\p{Cc}/gu, ' ')
}
