/** Normalizes the names of tools to a category and a tool name. Pure. */

/** Types of the older task form; each is a tool of the category `os`. */
export const LEGACY_OS_TYPES: ReadonlySet<string> = new Set(['shell', 'file', 'http', 'dns', 'tcp', 'sleep', 'noop'])

/** Categories whose type may carry its tool: `os.shell`, `runtime.command`, `runtime.script`. */
const DOTTED = /^(os|runtime)\.(.+)$/

export interface ToolRef {
  /** The stored type: the category. */
  readonly type: string
  readonly toolName: string | undefined
}

/** A cache: every task needs its tool twice. */
const LEGACY_TOOLS: ReadonlyMap<string, ToolRef> = new Map(
  [...LEGACY_OS_TYPES].map((toolName) => [toolName, { type: 'os', toolName }]),
)

/** Maximum entries of the cache. Callers choose the names of MCP tools, so there may be any number of them. */
const MAX_KNOWN_PAIRS = 1_000

/** Tools by type, then by tool name. Tasks with the same tool share one object. */
const known = new Map<string, Map<string | undefined, ToolRef>>()
let knownPairs = 0

/**
 * `shell` and `os.shell` become `os` with the tool `shell`; a `tool_name` may repeat its category (`os.shell`).
 * A type that names a tool wins over a `tool_name` beside it.
 */
export function normalizeTool(type: string, toolName: string | undefined): ToolRef {
  const legacy = LEGACY_TOOLS.get(type)
  if (legacy !== undefined) return legacy
  return known.get(type)?.get(toolName) ?? newRef(type, toolName)
}

function newRef(type: string, toolName: string | undefined): ToolRef {
  const ref = refOf(type, toolName)
  if (knownPairs >= MAX_KNOWN_PAIRS) return ref
  knownPairs++
  let tools = known.get(type)
  if (tools === undefined) {
    tools = new Map()
    known.set(type, tools)
  }
  tools.set(toolName, ref)
  return ref
}

function refOf(type: string, toolName: string | undefined): ToolRef {
  const dotted = DOTTED.exec(type)
  if (dotted !== null) return { type: dotted[1]!, toolName: dotted[2]! }
  const repeated = `${type}.`
  return { type, toolName: toolName?.startsWith(repeated) ? toolName.slice(repeated.length) : toolName }
}
