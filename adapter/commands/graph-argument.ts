/** The task graph of a subcommand, from a file or standard input, in JSON or YAML. */
import { choice, texts } from '../../shared/flags.ts'
import { readInput } from '../../shared/request-input.ts'
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
  return { bytes: withParameters(isYaml ? await readYaml(bytes, name) : bytes, parameters, name), name }
}

async function readYaml(bytes: Uint8Array, name: string): Promise<Uint8Array> {
  const { jsonOfYaml } = await import('../graph-file/yaml.ts')
  return new TextEncoder().encode(await jsonOfYaml(new TextDecoder().decode(bytes), name))
}
