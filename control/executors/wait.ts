/**
 * The type `wait`: a task that waits until a caller signals, until a time, or until an HTTP answer is as expected.
 *
 * As for an approval, no attempt executes for it (`scheduler/asked-tasks.ts`). The executor names the type, checks the
 * parameters, and looks at the address that the task waits for.
 */
import { Type } from '../../shared/contract/schema-builder.ts'
import {
  MAX_SIGNAL_BYTES,
  MAX_WAIT_CHARACTERS,
  MAX_WAIT_MESSAGE_CHARACTERS,
  WAIT_TYPE,
} from '../../shared/contract/signal.ts'
import { NotBefore, notBeforeExpected } from '../../shared/contract/start-order.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { jsonOrUndefined } from '../../shared/text/json.ts'
import { pointerValue } from '../json/json-pointer.ts'
import { isNotBefore } from '../rules/not-before.ts'
import { isLargeJson } from '../rules/result-file.ts'
import { type Expectation, expectationIn, passes } from '../rules/when.ts'
import {
  type ExecutableTask,
  ExecutionError,
  type Executor,
  invalidInput,
  type Look,
  type ToolParameters,
} from './executor.ts'
import type { HttpResult, HttpTool } from './os/http.ts'
import { ToolParams } from './params.ts'

export const waitParams = new ToolParams(
  WAIT_TYPE,
  Type.Object({
    message: Type.Optional(
      Type.String({
        maxLength: MAX_WAIT_MESSAGE_CHARACTERS,
        expected: `string of at most ${MAX_WAIT_MESSAGE_CHARACTERS} characters`,
        description: 'What it waits for, for people.',
        examples: ['The build farm has the image.'],
      }),
    ),
    until: Type.Optional(
      Type.Unsafe<NotBefore>({
        ...NotBefore,
        expected: notBeforeExpected,
        description:
          'When it succeeds by itself, with the result null: a time, or milliseconds after it began to wait.',
        examples: [60_000, '2030-01-31T09:30:00Z'],
      }),
    ),
    http: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          expected: 'object with url',
          description: 'A request that is repeated until its answer is as expected: url, method, headers, body.',
          examples: [{ url: 'https://example.org/build/42' }],
        },
      ),
    ),
    expect: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          expected: 'object with equals, not, in or matches',
          description:
            'What the answer must be: path, a JSON Pointer into {status_code, headers, body, json} (default /status_code), and one of equals, not, in, matches. Default: a status below 400.',
          examples: [{ path: '/json/state', equals: 'done' }],
        },
      ),
    ),
    signal: Type.Optional(
      Type.Boolean({
        expected: 'boolean',
        description: 'Whether a signal ends it. Default: true without until and http, else false.',
      }),
    ),
  }),
)

const PARAMETERS: ToolParameters = { label: WAIT_TYPE, schema: waitParams.schema }

const fault = (text: string) => invalidInput(`parse ${WAIT_TYPE} params: ${text}`)

/** The expectation in checked parameters. Throws `invalid_input`. */
function expectationOf(expect: object | undefined): Expectation | undefined {
  if (expect === undefined) return undefined
  const found = expectationIn(expect as Record<string, unknown>, '/status_code')
  if (typeof found === 'string') throw fault(found)
  return found
}

/** Throws `invalid_input` for what no task can wait for. */
export function checkWait(toolName: string | undefined, input: unknown): void {
  if (toolName !== undefined && toolName !== '') throw invalidInput(`type ${WAIT_TYPE} has no tool "${toolName}"`)
  const { until, signal, http, expect } = waitParams.parse(input)
  if (isLargeJson(input, MAX_WAIT_CHARACTERS)) throw fault(`expected at most ${MAX_WAIT_CHARACTERS} characters`)
  if (!isNotBefore(until)) throw fault(`until: ${until} does not exist`)
  if (until === undefined && http === undefined && signal === false) {
    throw fault('signal: nothing else would end the task (add until or http, or leave signal out)')
  }
  if (expect !== undefined && http === undefined) throw fault('expect: there is no http whose answer could be so')
  if (http !== undefined && 'save_to' in http)
    throw fault('http.save_to: not in a wait (let a task after it fetch the file)')
  expectationOf(expect)
}

/** `http` makes the requests of tasks that wait for an answer. */
export const wait = (http: HttpTool): Executor => ({
  type: WAIT_TYPE,
  parametersOf: () => PARAMETERS,
  checkInput(toolName, input, _, tenant) {
    checkWait(toolName, input)
    const { http: request } = waitParams.parse(input)
    if (request !== undefined) http.checkInput(request, undefined, tenant)
  },
  execute({ id }: ExecutableTask) {
    throw new ExecutionError('internal', `task ${id} waits: no attempt executes it`)
  },
  async look(input, call): Promise<Look> {
    const { http: request, expect } = waitParams.parse(input)
    const expected = expectationOf(expect)
    try {
      const answer = await http.execute(request, { ...call, trace: undefined, begin: () => undefined })
      return await judged(answer, expected)
    } catch (error) {
      if (!(error instanceof ExecutionError) || error.code !== 'external_failure') throw error
      if (expected === undefined || error.result === undefined) return { isMet: false, why: error.message }
      return await judged(error.result as HttpResult, expected)
    }
  },
})

async function judged(answer: HttpResult, expected: Expectation | undefined): Promise<Look> {
  const result = { ...answer, body: answer.body.slice(0, MAX_SIGNAL_BYTES) }
  if (expected === undefined) return { isMet: true, result }
  const { path, test } = expected
  const at = pointerValue({ ...answer, json: jsonOrUndefined(answer.body) }, path)
  if (!at.found) return { isMet: false, why: `the answer has no ${path}` }
  if (await runCooperatively(passes(test, at.value))) return { isMet: true, result }
  return { isMet: false, why: `${path} is ${JSON.stringify(at.value)}` }
}
