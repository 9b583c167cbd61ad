/** Finds shell scripts of a graph that go on after a line that failed, so that only the last line decides. Pure. */
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'

/** Hints for people, at most. */
const MAX_HINTS = 20

/** Types whose tasks may have a shell script. */
const SCRIPT_TYPES: ReadonlySet<unknown> = new Set(['runtime', 'runtime.script', 'os', 'os.shell', 'shell'])

/** A sentence for each task whose script has several commands, and no `set -e` before the second one. */
export function scriptHints(graph: Uint8Array): string[] {
  const value = jsonOrUndefined(new TextDecoder().decode(graph))
  const tasks = isObject(value) && Array.isArray(value.tasks) ? value.tasks : []
  return tasks
    .filter((task) => isObject(task) && SCRIPT_TYPES.has(task.type))
    .flatMap((task) => {
      const script = shellScriptOf(task.input ?? task.params)
      const lines = script === undefined ? 0 : linesAfterAFault(script)
      return lines > 1
        ? [`task ${task.id}: its script has ${lines} lines and goes on after one that fails: begin it with set -e`]
        : []
    })
    .slice(0, MAX_HINTS)
}

/** The script of the parameters; undefined if there is none, or another program than a shell reads it. */
function shellScriptOf(params: unknown): string | undefined {
  if (!isObject(params)) return undefined
  const { script, interpreter } = isObject(params.execution) ? params.execution : params
  if (typeof script !== 'string') return undefined
  const [program = '/bin/sh', ...flags]: string[] = Array.isArray(interpreter)
    ? interpreter.map(String)
    : ((/^#!\s*(.*)/.exec(script)?.[1] ?? '').replace(/^\S*\/env\s+/, '').match(/\S+/g) ?? [])
  const isShell = /(?:^|\/)(?:sh|bash|dash|ash|ksh|zsh)$/.test(program)
  return isShell && !flags.some((flag) => /^-[a-z]*e/.test(flag)) ? script : undefined
}

/** The number of lines with commands; 0 if the first one ends the script after a fault, or if lines may be one command. */
function linesAfterAFault(script: string): number {
  const joined = script.replace(/\\\n/g, ' ').replace(/(&&|\|\||\|)[ \t]*\n\s*/g, '$1 ')
  const lines = joined.split('\n').filter((line) => /^\s*[^\s#]/.test(line))
  const [first = ''] = lines
  const isStrict = /^\s*set\s(?:[^;&|#]*\s)?(?:-[A-Za-z]*e[A-Za-z]*|errexit)(?![^\s;&|])/.test(first)
  const isOneCommand = /^\s*(?:if|for|while|case)\b/.test(first) || joined.includes('<<') || lines.some(hasOpenQuote)
  return isStrict || isOneCommand ? 0 : lines.length
}

const hasOpenQuote = (line: string): boolean => /["']/.test(line.replace(/\\.|'[^']*'|"(?:\\.|[^"\\])*"/g, ''))
