/** What agents learn before they act: the contract's capabilities, and the kinds as tools for a model. Pure. */
import {
  ACTION_KINDS,
  type AdapterCapabilities,
  type AdapterTool,
  type AdapterTools,
  PROFILES,
  SCHEMA_VERSION,
} from '../../shared/contract/adapter-v1.ts'
import { publicSchema } from '../graph/public-schema.ts'
import type { InputSchemas } from './input-check.ts'
import { functionName, KINDS } from './kinds.ts'

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

/** An executable that is offered as a tool of its own. */
export interface OfferedSkill {
  readonly name: string
  readonly description: string
}

/** The tools, in the order of the kinds, then the skills. */
export const toolManifest = (inputs: InputSchemas, skills: readonly OfferedSkill[]): AdapterTools => ({
  schema_version: SCHEMA_VERSION,
  tools: [...kindTools(inputs), ...skillTools(inputs, skills)],
})

const kindTools = (inputs: InputSchemas): AdapterTool[] =>
  ACTION_KINDS.map((kind): AdapterTool => {
    const { category, description, aliases } = KINDS[kind]
    return {
      name: functionName(kind),
      action_kind: kind,
      category,
      description,
      input_schema: publicSchema(inputs[kind]),
      ...(aliases !== undefined && { aliases: Object.keys(aliases) }),
    }
  })

/** Each skill as a tool whose name a model may use; `tool_name` is what an action of the kind cli.run calls it by. */
function skillTools(inputs: InputSchemas, skills: readonly OfferedSkill[]): AdapterTool[] {
  const taken = new Set(ACTION_KINDS.map(functionName))
  return skills.map(({ name, description }) => {
    const plain = `skill_${name.replace(/[^a-zA-Z0-9_-]/g, '_')}`.slice(0, MAX_FUNCTION_NAME - 4)
    let unique = plain
    for (let n = 2; taken.has(unique); n++) unique = `${plain}_${n}`
    taken.add(unique)
    return {
      name: unique,
      action_kind: 'cli.run',
      category: KINDS['cli.run'].category,
      description: description === '' ? `The local skill ${name}.` : description,
      input_schema: publicSchema(inputs['cli.run']),
      tool_name: name,
    }
  })
}

/** Characters that model providers allow in the name of a function. */
const MAX_FUNCTION_NAME = 64
