/** The result of an attempt to start a service, and texts that all attempts use. */

export type StartedBy = 'compose' | 'container' | 'start'

export type Attempt =
  | {
      readonly isStarted: true
      /** Absent if it was running already. */
      readonly by?: StartedBy
      readonly note: string
      /** Commands that help if the service does not become ready. */
      readonly hints: readonly string[]
      /** Resolves when the started service ends, with a sentence on its end and its last output. */
      readonly ended?: Promise<string>
      /** The likely cause when the time is up. Empty if unknown. */
      diagnose?(): Promise<string>
      /** Stops watching the started service. The service keeps running. */
      release?(): void
    }
  | { readonly isStarted: false; readonly note: string; readonly hints: readonly string[] }

export const failed = (note: string, hints: readonly string[] = []): Attempt => ({ isStarted: false, note, hints })

/** Lines of a service's output in a note, and characters of each. */
const LAST_LINES = 5
const MAX_LINE_LENGTH = 500

/** The last lines of a service's output, without colours. Empty if it wrote nothing. */
export function lastLines(output: string): string {
  const lines = plainLines(output).slice(-LAST_LINES)
  return lines.map((line) => (line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH)}...` : line)).join('\n')
}

/** The non-empty lines as plain text, without terminal sequences. Of text that overwrote itself (`\\r`) only the last. */
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
