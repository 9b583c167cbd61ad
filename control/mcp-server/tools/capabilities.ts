/** `capabilities`: what can be asked for here. */
import { ACTION_KINDS } from '../../../shared/contract/adapter-v1.ts'
import {
  MAX_LOG_CHARACTERS,
  MAX_NAMED_TASKS,
  MAX_SHOWN_TASKS,
  MAX_TOOL_WAIT_MS,
} from '../../../shared/contract/mcp-limits.ts'
import { CapabilitiesAnswer, CapabilitiesInput } from '../../../shared/contract/mcp-server.ts'
import { badRequest } from '../../../shared/errors.ts'
import { VERSION } from '../../../shared/version.ts'
import { KINDS, resolveKind } from '../../adapter-v1/kinds.ts'
import { publicSchema } from '../../graph/public-schema.ts'
import { actionInputs } from '../../operations/action-inputs.ts'
import { defineTool } from '../tool.ts'

/** Skills that are named. */
const MAX_NAMED_SKILLS = 200

export const capabilitiesTool = defineTool({
  name: 'capabilities',
  title: 'What this service can do',
  description:
    'See the kinds of actions, task types, skills, MCP servers and limits. With a kind, only that one, with the JSON Schema of its input: look there before run_action if you are not sure of the input.',
  input: CapabilitiesInput,
  answer: CapabilitiesAnswer,
  isReadOnly: true,
  async run({ kind: asked }, { intake, listSkills, mcpServers, maxBodyBytes }): Promise<CapabilitiesAnswer> {
    const only = asked === undefined ? undefined : resolveKind(asked)?.kind
    if (asked !== undefined && only === undefined) {
      throw badRequest(`unknown action kind ${JSON.stringify(asked)} (available: ${ACTION_KINDS.join(', ')})`)
    }
    const types = intake.executors.types
    const notReady = intake.readiness.fault()
    const kinds = ACTION_KINDS.filter((kind) => {
      const { category } = KINDS[kind]
      return only === undefined ? category === 'task_graph' || types.has(category) : kind === only
    })
    return {
      version: VERSION,
      ready: notReady === undefined,
      ...(notReady !== undefined && { reason: notReady }),
      task_types: [...types].sort(),
      action_kinds: kinds.map((kind) => {
        const { description, aliases } = KINDS[kind]
        return {
          kind,
          description,
          ...(aliases !== undefined && { aliases: Object.keys(aliases) }),
          ...(only !== undefined && { input_schema: publicSchema(actionInputs[kind]) }),
        }
      }),
      skills: (await listSkills()).slice(0, MAX_NAMED_SKILLS).map(({ name }) => name),
      mcp_servers: mcpServers.names,
      limits: {
        wait_ms: MAX_TOOL_WAIT_MS,
        tasks_named_in_a_call: MAX_NAMED_TASKS,
        tasks_shown_in_an_answer: MAX_SHOWN_TASKS,
        characters_of_a_page_of_logs: MAX_LOG_CHARACTERS,
        bytes_of_a_graph: maxBodyBytes,
      },
    }
  },
})
