/** What `taskmill-escape` says of its attempts, a line each. */

const VERDICTS = ['blocked', 'open', 'not_applicable'] as const
export type Verdict = (typeof VERDICTS)[number]

export interface Attempt {
  readonly name: string
  readonly verdict: Verdict
  /** What it did and how that ended, for people. */
  readonly detail: string
}

/** Throws for what is no such line: nothing that it says may be passed over. */
export const parseAttempts = (text: string): Attempt[] => linesOf(text).map(parseLine)

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

function parseLine(line: string): Attempt {
  const [name, verdict, detail, ...rest] = line.split('\t')
  const known = VERDICTS.find((candidate) => candidate === verdict)
  if (!name || known === undefined || detail === undefined || rest.length > 0)
    throw new Error(`not an attempt: ${JSON.stringify(line)}`)
  return { name, verdict: known, detail }
}

/** An attempt that can be made. One that is alone may end the whole sandbox, and has one to itself. */
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
