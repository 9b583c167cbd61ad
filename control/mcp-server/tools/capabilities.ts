/** `capabilities`: action kinds, task types, skills, MCP servers and limits of this service. */

import { CapabilitiesAnswer } from '../../../shared/contract/mcp-answers.ts'
import { CapabilitiesInput } from '../../../shared/contract/mcp-inputs.ts'
import {
  MAX_LOG_CHARACTERS,
  MAX_NAMED_TASKS,
  MAX_SHOWN_TASKS,
  MAX_TOOL_WAIT_MS,
} from '../../../shared/contract/mcp-limits.ts'
import { VERSION } from '../../../shared/process/version.ts'
import { describeService } from '../../operations/describe.ts'
import { defineTool } from '../tool.ts'

export const capabilitiesTool = defineTool({
  name: 'capabilities',
  title: 'What this service can do',
  description:
    'List the action kinds, task types, skills, MCP servers, runtime services and limits of this service. With kind, it lists only that action kind, with the JSON Schema of its input. Call it before run_action if you are not sure of the input.',
  right: 'read',
  input: CapabilitiesInput,
  answer: CapabilitiesAnswer,
  isReadOnly: true,
  async run({ kind: asked }, parts): Promise<CapabilitiesAnswer> {
    const { notReady, taskTypes, kinds, skills, mcpServers, runtimes } = await describeService(parts, asked)
    return {
      version: VERSION,
      ready: notReady === undefined,
      ...(notReady !== undefined && { reason: notReady }),
      task_types: [...taskTypes],
      action_kinds: kinds.map(({ kind, description, aliases, inputSchema }) => ({
        kind,
        description,
        ...(aliases !== undefined && { aliases: Object.keys(aliases) }),
        ...(inputSchema !== undefined && { input_schema: inputSchema }),
      })),
      skills: [...skills],
      mcp_servers: [...mcpServers],
      runtimes: runtimes.map(({ name, labels, draining }) => ({ name, labels: { ...labels }, draining })),
      limits: {
        wait_ms: MAX_TOOL_WAIT_MS,
        tasks_named_in_a_call: MAX_NAMED_TASKS,
        tasks_shown_in_an_answer: MAX_SHOWN_TASKS,
        characters_of_a_page_of_logs: MAX_LOG_CHARACTERS,
        bytes_of_a_graph: parts.maxBodyBytes,
      },
    }
  },
})
