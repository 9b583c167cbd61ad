/** `patch_graph`: changes a live graph, as PATCH /graphs/{id} does. */
import { PatchGraphAnswer } from '../../../shared/contract/mcp-answers.ts'
import { PatchGraphInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import type { PatchResponse } from '../../../shared/contract/patch.ts'
import { patchGraph } from '../../operations/patch-graph.ts'
import { defineTool } from '../tool.ts'
import { firstIds } from '../view.ts'

export const patchGraphTool = defineTool({
  name: 'patch_graph',
  title: 'Change a live graph',
  description:
    'Change the plan of a graph that runs: add tasks, and remove, replace or change those that have not started, all at once. What runs or has ended stays. An ended graph cannot be changed: see rerun_graph and retry_task.',
  right: 'submit',
  input: PatchGraphInput,
  answer: PatchGraphAnswer,
  isDestructive: true,
  async run(
    { graph_id, dry_run: isDryRun = false, idempotency_key: key = null, ...patch },
    parts,
    { by },
  ): Promise<PatchGraphAnswer> {
    const { remove, change } = patch
    const named = (id: string) => (id.startsWith(`${graph_id}/`) ? id.slice(graph_id.length + 1) : id)
    const within = {
      ...(remove && { remove: remove.map(named) }),
      ...(change && { change: Object.fromEntries(Object.entries(change).map(([id, fields]) => [named(id), fields])) }),
    }
    const body = new TextEncoder().encode(JSON.stringify({ ...patch, ...within }))
    const answer: PatchResponse = JSON.parse(await patchGraph(parts, graph_id, body, { key, by, isDryRun }))
    const { added, removed, replaced, waves, warnings } = answer
    const isScoped = parts.store.graph(graph_id)?.isScoped === true
    const shown = (ids: readonly string[]) =>
      ids.slice(0, MAX_SHOWN_TASKS).map((id) => (isScoped ? `${graph_id}/${id}` : id))
    const isLong =
      Math.max(added.length, removed.length, replaced.length, (waves ?? []).flat().length) > MAX_SHOWN_TASKS
    return {
      ...{ graph_id, revision: answer.revision },
      ...{ added: shown(added), removed: shown(removed), replaced: shown(replaced) },
      ...(isLong && { truncated: true as const }),
      ...(waves && { waves: firstIds(waves) }),
      ...(warnings && { warnings: [...warnings] }),
    }
  },
})
