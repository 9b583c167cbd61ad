/** `taskmill patch`: gives a live graph other tasks. */
import type { PatchResponse } from '../../shared/contract/patch.ts'
import { CallFailed } from '../../shared/http/client.ts'
import { flag, optionalInteger } from '../../shared/settings/flags.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { success } from '../envelope.ts'
import { failureLines } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { type GivenInput, inFile, inputOf, inputSettings } from './graph-argument.ts'
import { onlyIdOf } from './ids.ts'

export const patch = defineCommand({
  summary:
    'Change a live graph: add tasks, and remove, replace or change those that have not started. {"add", "remove", "replace", "change"}.',
  usage: 'GRAPH_ID [FILE] [--revision 3] [--dry-run]',
  settings: {
    ...inputSettings,
    revision: optionalInteger({
      value: 'n',
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      help: 'The patch is refused if the graph has another revision, because somebody changed it. Default: that of the file, or any.',
    }),
    dryRun: flag({ help: 'Change nothing: check the patch, and show what it would make of the graph.' }),
  },
  maxArguments: 2,
  async run({ values: { revision, dryRun, ...values }, positionals, client }) {
    const id = onlyIdOf(positionals, 'graph id')
    const given = await inputOf(positionals.slice(1), values, {
      name: 'a patch of a graph',
      shape: 'object with add, remove, replace or change',
    })
    const path = `/graphs/${encodeURIComponent(id)}${dryRun ? '?dry_run=true' : ''}`
    const body = revision === undefined ? given.bytes : await withRevision(given, revision)
    const answer = (await inFile(given, client.call({ method: 'PATCH', path, body }))) as PatchResponse
    return { ...success(answer), warnings: failureLines(answer.warnings) }
  },
})

/** The patch is written anew, which would round large numbers. */
async function withRevision({ bytes, name }: GivenInput, revision: number): Promise<Uint8Array> {
  const patch = jsonOrUndefined(new TextDecoder().decode(bytes))
  if (!isObject(patch)) throw new CallFailed(`${name} is no JSON object, so --revision has no place`)
  const { jsonFault, MAX_JSON_BYTES } = await import('../../shared/graph-file/json-fault.ts')
  const fault = jsonFault(patch, MAX_JSON_BYTES)
  if (fault !== undefined) throw new CallFailed(`${name}: ${fault}`)
  return new TextEncoder().encode(JSON.stringify({ ...patch, revision }))
}
