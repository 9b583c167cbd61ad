/** A line that somebody types at the terminal of standard input, which does not show it. */
import { UsageError } from '../../shared/contract/errors.ts'
import { MAX_SECRET_BYTES } from '../../shared/files/secrets-directory.ts'
import { writeError } from '../../shared/process/standard-output.ts'
import { Interrupted } from '../envelope.ts'

/** Characters of the line. Each has at most four bytes. */
export const MAX_TYPED_CHARACTERS = MAX_SECRET_BYTES / 4

/** What the keys send when a terminal passes each on. */
const KEY = { interrupt: '\x03', end: '\x04', backspace: ['\x7f', '\b'], clear: '\x15', enter: ['\r', '\n'] }

/** Throws `Interrupted` after Ctrl-C, and `UsageError` for several pasted lines or too many characters. */
export async function hiddenLine(prompt: string): Promise<string> {
  const { stdin } = process
  // Without the raw mode a line has at most 4096 bytes.
  stdin.setRawMode(true)
  try {
    await writeError(prompt)
    return await new Promise((resolve, reject) => {
      const line = new TypedLine()
      stdin.setEncoding('utf8').on('data', (text: string) => {
        try {
          if (line.add(text)) resolve(line.text)
        } catch (error) {
          reject(error as Error)
        }
      })
      stdin.once('end', () => resolve(line.text))
    })
  } finally {
    stdin.setRawMode(false)
    await writeError('\n')
  }
}

export class TypedLine {
  #characters: string[] = []

  get text(): string {
    return this.#characters.join('')
  }

  /** Adds what was typed or pasted. Returns whether it ended the line. */
  add(typed: string): boolean {
    const characters = [...typed]
    for (const [index, character] of characters.entries()) {
      if (character === KEY.interrupt) throw new Interrupted('SIGINT', 130)
      if (character === KEY.end) return true
      if (KEY.enter.includes(character)) {
        if (index === characters.length - 1) return true
        throw new UsageError('a prompt takes one line: give several lines on standard input')
      }
      if (character === KEY.clear) this.#characters = []
      else if (KEY.backspace.includes(character)) this.#characters.pop()
      else if (this.#characters.push(character) > MAX_TYPED_CHARACTERS)
        throw new UsageError(`a prompt takes at most ${MAX_TYPED_CHARACTERS} characters: give more on standard input`)
    }
    return false
  }
}
