/** Runtime requests for tests. */
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'

export const command = (program: string, ...args: string[]): SubmitTaskRequest => ({
  execution: { kind: 'command', program, args },
})

export const script = (text: string): SubmitTaskRequest => ({ execution: { kind: 'script', script: text } })

/** Runs until it is ended; `dispose` of the service does that. */
export const SLEEP = command('/bin/sleep', '600')

/** The script of a task that goes on once `file` exists. */
export const waitFor = (file: string): string => `while [ ! -e '${file}' ]; do sleep 0.02; done`

export interface Refused {
  readonly error: { readonly code: string; readonly message: string; readonly details: unknown }
}

/** Status, code and message of an answer that must be a refusal with a body as the specification has it. */
export async function refused(response: Response): Promise<[status: number, code: string, message: string]> {
  const body = (await response.json()) as Refused
  if (Object.keys(body).join() !== 'error' || Object.keys(body.error).toSorted().join() !== 'code,details,message') {
    throw new Error(`not an error body: ${response.status} ${JSON.stringify(body)}`)
  }
  return [response.status, body.error.code, body.error.message]
}
