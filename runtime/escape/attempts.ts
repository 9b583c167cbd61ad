/** Parses the output of `taskmill-escape`: one line for each attempt, with fields separated by tabs. */

const VERDICTS = ['blocked', 'open', 'not_applicable'] as const
export type Verdict = (typeof VERDICTS)[number]

export interface Attempt {
  readonly name: string
  readonly verdict: Verdict
  /** The action of the attempt and its end, for people. */
  readonly detail: string
}

/** Throws for a malformed line: ignoring one could hide an open attempt. */
export const parseAttempts = (text: string): Attempt[] => linesOf(text).map(parseLine)

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

function parseLine(line: string): Attempt {
  const [name, verdict, detail, ...rest] = line.split('\t')
  const known = VERDICTS.find((candidate) => candidate === verdict)
  if (!name || known === undefined || detail === undefined || rest.length > 0)
    throw new Error(`not an attempt: ${JSON.stringify(line)}`)
  return { name, verdict: known, detail }
}

/**
 * An attempt that the program can make. An attempt with `isAlone` may end the whole sandbox, so it gets its own
 * sandbox.
 */
export interface Listed {
  readonly name: string
  readonly isAlone: boolean
  readonly what: string
}

export const parseList = (text: string): Listed[] =>
  linesOf(text).map((line) => {
    const [name, company, what] = line.split('\t')
    if (!name || !what || !['alone', 'together'].includes(company!)) throw new Error(`not an attempt: ${line}`)
    return { name, isAlone: company === 'alone', what }
  })
