/** The task graph of a subcommand, from a file or standard input, in JSON or YAML. */

import type { ScheduledFile } from '../../shared/graph-file/schedule-block.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { choice, texts } from '../../shared/settings/flags.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { fileOf, fileSetting } from './file-argument.ts'

export const parameterSetting = texts({
  value: 'name=value',
  help: 'Value of a parameter that the graph declares in its field params. name:=json for other values than text.',
})

export const inputSettings = {
  file: fileSetting,
  format: choice({
    default: 'auto',
    choices: ['auto', 'json', 'yaml'],
    help: 'Format of the file. auto: yaml for files that end in .yaml or .yml, else json.',
  }),
}

export const graphSettings = { ...inputSettings, set: parameterSetting }

/** An object from a file or standard input. */
export interface GivenInput {
  /** The object as JSON. A JSON file is passed on unchanged: the service checks it. */
  readonly bytes: Uint8Array
  /** The name of the source, for people. */
  readonly name: string
  /** What the service says about the object, in the terms of its file. */
  readonly said: (message: string) => string
}

export interface GivenGraph extends GivenInput {
  /** What its field `schedule` says, which is no part of the graph. Undefined: it has none. */
  readonly schedule: ScheduledFile['schedule']
}

/** Resolves as `call` does. A refusal is told in the terms of the file. */
export async function inFile<T>({ said }: Pick<GivenInput, 'said'>, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw error instanceof CallFailed && error.statusCode === 400 ? new CallFailed(said(error.message), error) : error
  }
}

interface InputValues {
  readonly file: string
  readonly format: string
}

/**
 * Throws `UsageError` for arguments that contradict each other or the graph, `CallFailed` for a file that cannot be
 * read.
 */
export async function graphOf(
  positionals: readonly string[],
  values: InputValues & { readonly set: readonly string[] },
): Promise<GivenGraph> {
  const { parametersIn, withParameters } = await import('../graph-file/parameters.ts')
  const parameters = parametersIn(values.set)
  const { bytes, name, said } = await inputOf(positionals, values, { name: 'a task graph' })
  const graph = await split(withParameters(bytes, parameters, name), name)
  return { ...graph, name, said: (message) => said(message) + whereTasksAre(message, graph.bytes) }
}

/** `what` names the object in errors. Throws as `graphOf`. */
export async function inputOf(
  positionals: readonly string[],
  values: InputValues,
  what: { readonly name: string; readonly shape?: string },
): Promise<GivenInput> {
  const file = fileOf(positionals, values)
  const bytes = await readInput(file, what.name)
  const name = file === '' || file === '-' ? 'standard input' : file
  const isYaml = values.format === 'yaml' || (values.format === 'auto' && /\.ya?ml$/i.test(file))
  if (!isYaml) return { bytes, name, said: (message) => message }
  const { jsonOfYaml, refusalInYaml } = await import('../../shared/graph-file/yaml.ts')
  const text = new TextDecoder().decode(bytes)
  const json = await jsonOfYaml(text, name, what.shape)
  return { bytes: new TextEncoder().encode(json), name, said: (message) => refusalInYaml(message, text, name) }
}

/** The bytes stay as they are unless there is such a field: numbers may be larger than those of JavaScript. */
async function split(bytes: Uint8Array, name: string): Promise<Pick<GivenGraph, 'bytes' | 'schedule'>> {
  const text = new TextDecoder().decode(bytes)
  const value = text.includes('"schedule"') ? jsonOrUndefined(text) : undefined
  if (!isObject(value) || value.schedule === undefined) return { bytes, schedule: undefined }
  const { jsonFault, MAX_JSON_BYTES } = await import('../../shared/graph-file/json-fault.ts')
  const fault = jsonFault(value, MAX_JSON_BYTES)
  if (fault !== undefined) throw new CallFailed(`${name}: ${fault}`)
  const { splitFile } = await import('../../shared/graph-file/schedule-block.ts')
  const { graph, schedule } = splitFile(value, name)
  return { bytes: new TextEncoder().encode(JSON.stringify(graph)), schedule }
}

/** What other systems call the list of tasks. */
const NAMES_OF_TASKS = ['steps', 'jobs', 'nodes', 'stages', 'task']

/** A hint for a graph whose tasks have another name. The text of the service for a graph without tasks is fixed. */
function whereTasksAre(message: string, graph: Uint8Array): string {
  if (message !== 'task graph is empty') return ''
  const fields = jsonOrUndefined(new TextDecoder().decode(graph))
  const found = NAMES_OF_TASKS.find((name) => isObject(fields) && Object.hasOwn(fields, name))
  return found === undefined ? '' : ` (it has "${found}": the list of tasks is "tasks")`
}
