/** `taskmill rerun`: runs a graph again as a new one, which keeps the outcomes of the tasks that succeeded. */
import type { RerunRequest, RerunResponse } from '../../shared/contract/rerun.ts'
import { flag, list } from '../../shared/settings/flags.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { followSettings, showSettings } from './follow-settings.ts'
import { parameterSetting } from './graph-argument.ts'
import { onlyIdOf } from './ids.ts'
import { inFlags } from './in-flags.ts'

export const rerun = defineCommand({
  summary:
    'Run a graph again as a new graph. Tasks that succeeded keep their outcomes; all others run, and what is downstream.',
  usage: 'GRAPH_ID [--from ID,ID] [--set name=value] [--follow] [--timeout 10m]',
  settings: {
    from: list({
      value: 'failed|a,b',
      help: 'Tasks that run again although they succeeded, with everything downstream. failed, the default, names none.',
    }),
    set: parameterSetting,
    follow: flag({ letter: 'f', help: 'Follow the new graph, as run does.' }),
    ...followSettings,
  },
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values, positionals, given, client, env, interruption: signal }) {
    const { from, set, follow } = values
    const source = onlyIdOf(positionals, 'graph id')
    const { parametersIn } = await import('../graph-file/parameters.ts')
    const params = Object.fromEntries(parametersIn(set))
    const isNamed = from.length > 0 && !(from.length === 1 && from[0] === 'failed')
    const request: RerunRequest = { ...(isNamed && { from }), ...(set.length > 0 && { params }) }
    const path = `/graphs/${encodeURIComponent(source)}/rerun`
    const body = new TextEncoder().encode(JSON.stringify(request))
    const answer = await inFlags(client.call({ method: 'POST', path, body, signal })).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error
    })
    if (!follow) return submitted(answer, { client, env })
    const { graph_id: graphId, accepted, reused } = answer as RerunResponse
    const title = ` taskmill  runs ${accepted - reused.length} of ${accepted} tasks of ${source} again on ${client.baseUrl}`
    const { showGraph } = await import('../follow/show.ts')
    const shown = { client, graphId, title, expectations: new Map(), ...showSettings(values, given) }
    return { ...submitted(answer, { client, env }), ...(await showGraph({ ...shown, env, interruption: signal })) }
  },
})
