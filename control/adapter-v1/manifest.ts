/** What agents learn before they act: the contract's capabilities, and the kinds as tools for a model. Pure. */
import {
  ACTION_KINDS,
  type AdapterCapabilities,
  type AdapterTool,
  type AdapterTools,
  PROFILES,
  SCHEMA_VERSION,
} from '../../shared/contract/adapter-v1.ts'
import type { InputSchemas } from './input-check.ts'
import { functionName, KINDS } from './kinds.ts'
import { publicSchema } from './public-schema.ts'

export const capabilities: AdapterCapabilities = {
  schema_version: SCHEMA_VERSION,
  profiles: PROFILES,
  action_kinds: ACTION_KINDS,
  compatibility_notes: [
    'Kinds and aliases are accepted in any case; translation_trace tells the one that was asked for and the one it is.',
    'POST /adapters/translate stores nothing. Its task_graph can be sent to POST /tasks, alone or joined with others.',
    'POST /adapters/actions submits by the rules of POST /tasks: 202 once it is on disk, 409 while the id is in use.',
    'A profile changes nothing but the annotation "adapter"; other names than these are accepted too.',
    'runtime.command and runtime.script take a whole runtime request or its execution fields beside the rest.',
  ],
}

/** The tools, in the order of the kinds. */
export const toolManifest = (inputs: InputSchemas): AdapterTools => ({
  schema_version: SCHEMA_VERSION,
  tools: ACTION_KINDS.map((kind): AdapterTool => {
    const { category, description, aliases } = KINDS[kind]
    return {
      name: functionName(kind),
      action_kind: kind,
      category,
      description,
      input_schema: publicSchema(inputs[kind]),
      ...(aliases !== undefined && { aliases: Object.keys(aliases) }),
    }
  }),
})
