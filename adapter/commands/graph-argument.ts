/** The task graph of a subcommand, from a file or standard input, in JSON or YAML. */

import { CallFailed } from '../../shared/http/client.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { choice, texts } from '../../shared/settings/flags.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { fileOf, fileSetting } from './file-argument.ts'

export const parameterSetting = texts({
  value: 'name=value',
  help: 'Value of a parameter that the graph declares in its field params. name:=json for other values than text.',
})

export const graphSettings = {
  file: fileSetting,
  format: choice({
    default: 'auto',
    choices: ['auto', 'json', 'yaml'],
    help: 'Format of the graph. auto: yaml for files that end in .yaml or .yml, else json.',
  }),
  set: parameterSetting,
}

export interface GivenGraph {
  /** The graph as JSON. A JSON file is passed on unchanged: the service checks it. */
  readonly bytes: Uint8Array
  /** The name of the source, for people. */
  readonly name: string
  /** What the service says about the graph, in the terms of its file. */
  readonly said: (message: string) => string
}

/** Resolves as `call` does. A refusal is told in the terms of the file. */
export async function inFile<T>({ said }: GivenGraph, call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    throw error instanceof CallFailed && error.statusCode === 400 ? new CallFailed(said(error.message), error) : error
  }
}

/**
 * Throws `UsageError` for arguments that contradict each other or the graph, `CallFailed` for a file that cannot be
 * read.
 */
export async function graphOf(
  positionals: readonly string[],
  values: { readonly file: string; readonly format: string; readonly set: readonly string[] },
): Promise<GivenGraph> {
  const file = fileOf(positionals, values)
  const { parametersIn, withParameters } = await import('../graph-file/parameters.ts')
  const parameters = parametersIn(values.set)
  const bytes = await readInput(file, 'a task graph')
  const name = file === '' || file === '-' ? 'standard input' : file
  const isYaml = values.format === 'yaml' || (values.format === 'auto' && /\.ya?ml$/i.test(file))
  if (!isYaml) {
    const graph = withParameters(bytes, parameters, name)
    return { bytes: graph, name, said: (message) => message + whereTasksAre(message, graph) }
  }
  const { jsonOfYaml, refusalInYaml } = await import('../graph-file/yaml.ts')
  const text = new TextDecoder().decode(bytes)
  const json = new TextEncoder().encode(await jsonOfYaml(text, name))
  const said = (message: string) => refusalInYaml(message, text, name) + whereTasksAre(message, json)
  return { bytes: withParameters(json, parameters, name), name, said }
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
