/** Answers of GET /adapters/capabilities and GET /adapters/tools: the action kinds and skills as tools for a model. Pure. */
import {
  ACTION_KINDS,
  type AdapterCapabilities,
  type AdapterTool,
  type AdapterTools,
  PROFILES,
  SCHEMA_VERSION,
} from '../../shared/contract/adapter-v1.ts'
import { publicSchema } from '../../shared/http/openapi/public-schema.ts'
import type { InputSchemas } from './input-check.ts'
import { functionName, KINDS } from './kinds.ts'

export const capabilities: AdapterCapabilities = {
  schema_version: SCHEMA_VERSION,
  profiles: PROFILES,
  action_kinds: ACTION_KINDS,
  compatibility_notes: [
    'Kinds and aliases are accepted in upper and lower case; translation_trace has the requested name and the resolved kind.',
    'POST /adapters/translate stores nothing. Its task_graph can be sent to POST /tasks, alone or merged with others.',
    'POST /adapters/actions submits by the rules of POST /tasks: 202 once it is on disk, 409 while the id is in use.',
    'A profile sets only the annotation "adapter". Other names are accepted too.',
    'runtime.command and runtime.script take a whole runtime request, or one with its execution fields at the top level.',
  ],
}

/** A skill that is listed as a tool of its own. */
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

/** Each skill as a tool with a valid function name. A `cli.run` action names the skill in `tool_name`. */
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

/** Maximum length of a function name with model providers. */
const MAX_FUNCTION_NAME = 64
