/** Reads one graph file with a field `schedule`. Loaded only where there is one. */
import { messageOf } from '../../shared/contract/errors.ts'
import { jsonFault } from '../../shared/graph-file/json-fault.ts'
import { nameOfFile, splitFile } from '../../shared/graph-file/schedule-block.ts'
import { objectOfYaml, refusalInYaml } from '../../shared/graph-file/yaml.ts'
import { isObject, jsonTypeOf } from '../../shared/text/json.ts'

export const MAX_SCHEDULE_FILE_BYTES = 1024 * 1024

export interface ReadScheduleFile {
  /** Of the schedule. */
  readonly name: string
  /** The body of PUT /schedules/{name}. */
  readonly body: Uint8Array
  readonly decidesPause: boolean
  /** A refusal of the service in the terms of the file. */
  readonly said: (message: string) => string
}

/** Throws an error whose text is for people. */
export async function readScheduleFile(
  path: string,
  { file, size }: { readonly file: string; readonly size: number },
): Promise<ReadScheduleFile> {
  if (size > MAX_SCHEDULE_FILE_BYTES) throw new Error(`it has more than ${MAX_SCHEDULE_FILE_BYTES} bytes`)
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await Bun.file(path).slice(0, size).bytes())
  const isYaml = !/\.json$/i.test(file)
  const value = isYaml ? await objectOfYaml(text, file) : objectOfJson(text)
  const { graph, schedule } = splitFile(value, file)
  if (schedule === undefined) throw new Error('it has no field schedule: add one, or move the file elsewhere')
  const { name = nameOfFile(file), fields } = schedule
  return {
    name,
    body: new TextEncoder().encode(JSON.stringify({ ...fields, graph })),
    decidesPause: typeof fields.paused === 'boolean',
    said(message) {
      const inFile = message.startsWith('graph: ')
        ? message.slice('graph: '.length)
        : message.replace(/^invalid JSON: /, 'invalid JSON: schedule.')
      return isYaml ? refusalInYaml(inFile, text, file) : inFile
    },
  }
}

function objectOfJson(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`invalid JSON: ${messageOf(error)}`)
  }
  if (!isObject(value)) throw new Error(`expected object with tasks, got ${jsonTypeOf(value)}`)
  const fault = jsonFault(value, Number.POSITIVE_INFINITY)
  if (fault !== undefined) throw new Error(fault)
  return value
}
