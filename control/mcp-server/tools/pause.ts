/** `pause` and `resume`: nothing new starts in a graph, of a type of tasks, or at all; what runs goes on. */
import type { Static, TObject } from '@sinclair/typebox'
import { badRequest } from '../../../shared/contract/errors.ts'
import { PauseToolAnswer } from '../../../shared/contract/mcp-answers.ts'
import { PauseToolInput, ResumeToolInput } from '../../../shared/contract/mcp-inputs.ts'
import { ensureOfService, ensureRight } from '../../../shared/http/callers.ts'
import type { OperationParts } from '../../operations/parts.ts'
import { pause, pauseGraph, resume, resumeGraph } from '../../operations/pause.ts'
import { defineTool, type ToolContext } from '../tool.ts'

/** A graph is paused with the right to cancel it, anything else with `operate`. */
const toolOf = <I extends TObject>(
  facts: { readonly name: string; readonly title: string; readonly description: string; readonly input: I },
  ofGraph: typeof pauseGraph,
  ofAll: typeof pause,
) =>
  defineTool({
    ...facts,
    right: 'read',
    answer: PauseToolAnswer,
    async run(input: Static<I>, parts: OperationParts, { by }: ToolContext): Promise<PauseToolAnswer> {
      const { graph_id, ...fields } = input as { readonly graph_id?: string; readonly type?: string }
      if (graph_id !== undefined && fields.type !== undefined)
        throw badRequest('invalid input: name either graph_id or type')
      const body = new TextEncoder().encode(JSON.stringify(fields))
      if (graph_id !== undefined) return { ...(await ofGraph(parts, graph_id, body, by)) }
      ensureOfService(`${facts.name} without graph_id`, by)
      ensureRight(by, 'operate')
      return { ...(await ofAll(parts, body, by)) }
    },
  })

export const pauseTool = toolOf(
  {
    name: 'pause',
    title: 'Pause a graph, a type of tasks or the service',
    description:
      'Nothing of it starts until resume: of a graph (graph_id), of all tasks of a type (type), or, without both, of the whole service. What runs goes on, and can be cancelled. Graphs can be submitted meanwhile, and wait.',
    input: PauseToolInput,
  },
  pauseGraph,
  pause,
)

export const resumeTool = toolOf(
  {
    name: 'resume',
    title: 'End a pause',
    description: 'Ends the pause of a graph (graph_id), of a type of tasks (type), or, without both, of the service.',
    input: ResumeToolInput,
  },
  (parts, id, _body, by) => resumeGraph(parts, id, by),
  resume,
)
