/** Reads the request that `submit` and `run` send: from a file, from --json, or from standard input. */
import { UsageError } from '../../shared/contract/errors.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { text } from '../../shared/settings/flags.ts'

export const requestSettings = {
  file: text({ value: 'file', help: 'File to send. Default, or with -: standard input.' }),
  json: text({ value: 'text', help: 'The request itself, in place of a file.' }),
}

export async function readRequest({ file, json }: { file: string; json: string }): Promise<Uint8Array> {
  if (file !== '' && json !== '') throw new UsageError('give --file or --json, not both')
  return json === '' ? readInput(file, 'a task request') : new TextEncoder().encode(json)
}
