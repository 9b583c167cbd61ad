/** Prints the result of a call: one JSON object on standard output, short with `-o brief`, or text for people with `-o table`. */
import { messageOf } from '../shared/contract/errors.ts'
import { writeError, writeOut } from '../shared/process/standard-output.ts'
import { visibleJson, visibleLine } from '../shared/text/visible-text.ts'
import type { Output } from './common-settings.ts'
import { type Answer, EXIT, type Failure, failure } from './envelope.ts'
import type { Look } from './table/look.ts'
import { isTerminal } from './terminal.ts'

/** The output until the flags are read: the variable counts. */
export function outputBeforeFlags(): Output {
  const { TASKMILL_OUTPUT: output } = process.env
  return output === 'table' || output === 'brief' ? output : 'json'
}

/** Prints an answer, and its warnings to standard error. Returns the exit code. */
export async function printAnswer(answer: Answer, output: Output): Promise<number> {
  for (const warning of answer.warnings ?? []) await complain(warning)
  const data = output === 'brief' ? (answer.brief?.() ?? answer.data) : answer.data
  const text = output === 'table' ? await tableText(answer) : await jsonText({ ok: true, data })
  return print(text, answer.exitCode)
}

/** Prints what a subcommand threw. Returns the exit code. */
export async function printFailure(thrown: unknown, output: Output): Promise<number> {
  const { envelope, exitCode } = failure(thrown)
  if (output === 'json') return print(await jsonText(envelope), exitCode)
  if (output === 'brief') return print(await jsonText(inBrief(envelope)), exitCode)
  await complain(envelope.error.message)
  return envelope.data === undefined ? exitCode : print(await tableText({ data: envelope.data }), exitCode)
}

/** The message repeats what the body says. */
const inBrief = ({ error: { message, status_code }, ...rest }: Failure) => ({
  ...rest,
  error: { message, status_code },
})

/** A sentence on standard error. */
export async function complain(text: string): Promise<void> {
  await writeError(`taskmill: ${visibleLine(text)}\n`).catch(() => {}) // standard error is closed
}

/** One line in a pipe. On a terminal indented, with control characters escaped. */
const jsonText = async (envelope: object): Promise<string> =>
  (await isTerminal()) ? visibleJson(JSON.stringify(envelope, null, 2)) : JSON.stringify(envelope)

async function tableText({ data, table }: Pick<Answer, 'data' | 'table'>): Promise<string> {
  const look = await lookOf(process.env)
  if (table !== undefined) return (await table(look)).join('\n')
  const { generalTable } = await import('./table/general.ts')
  return generalTable(data, look).join('\n')
}

async function lookOf(env: Readonly<Record<string, string | undefined>>): Promise<Look> {
  const { colours, noColours } = await import('../shared/text/live-view/palette.ts')
  const { sizeOf } = await import('../shared/text/live-view/screen.ts')
  const isShown = await isTerminal()
  return {
    paint: isShown && env.TERM !== 'dumb' && !env.NO_COLOR ? colours : noColours,
    columns: isShown ? sizeOf(process.stdout).columns : Number.POSITIVE_INFINITY,
    nowMs: Date.now(),
  }
}

/** Prints `text`. Returns `exitCode`, or 1 if printing failed. */
async function print(text: string, exitCode: number): Promise<number> {
  try {
    if (text !== '') await writeOut(`${text}\n`)
    return exitCode
  } catch (error) {
    await complain(`cannot write the answer to standard output: ${messageOf(error)}`)
    return EXIT.error
  }
}
