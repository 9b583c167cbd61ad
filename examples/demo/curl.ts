/**
 * Support for hosts without curl. The steps of a build call curl, as real steps would. On such hosts it is a shell
 * function on top of perl, which every Debian and every macOS has.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface ScriptTask {
  readonly type: string
  readonly input?: { readonly script?: unknown }
}

/** The function, if it is needed here. `path` is the PATH of the tasks. Throws when there is nothing to make it of. */
export function standInForCurl(path: string | undefined): string | undefined {
  const has = (program: string) => Bun.which(program, path === undefined ? {} : { PATH: path }) !== null
  if (has('curl')) return undefined
  if (!has('perl')) throw new Error('the steps of examples/build.json fetch files with curl: install it')
  return readFileSync(join(import.meta.dir, 'curl.sh'), 'utf8')
}

/** The graph `json` with `preamble` before each script of a runtime task. */
export function withPreamble(json: string, preamble: string): string {
  const graph = JSON.parse(json) as { tasks: ScriptTask[] }
  const tasks = graph.tasks.map((task) =>
    task.type === 'runtime' && typeof task.input?.script === 'string'
      ? { ...task, input: { ...task.input, script: `${preamble}${task.input.script}` } }
      : task,
  )
  return JSON.stringify({ ...graph, tasks })
}
