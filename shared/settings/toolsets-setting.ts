/** A setting with sets of MCP tools. */
import { TOOLSET_WORDS, type Toolset, toolsetsIn } from '../contract/toolsets.ts'
import { Expected, type Setting } from './flags.ts'

/** `absent`: none. */
export const toolsets = (setting: {
  readonly variable?: string
  readonly default?: string
  readonly help: string
}): Setting<readonly Toolset[]> => ({
  ...setting,
  value: 'names',
  range: `${TOOLSET_WORDS.join(', ')}, with commas between them`,
  repeatable: true,
  parse(given) {
    const found = toolsetsIn(given)
    return 'unknown' in found ? new Expected(`sets of tools (${TOOLSET_WORDS.join(', ')})`) : found
  },
  absent: [],
})
