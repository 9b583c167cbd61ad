/** The tasks that a dynamic task adds to its graph by its result: `{"add_tasks": [...]}`. Pure. */
import type { Steps } from '../../shared/process/steps.ts'
import { isGiven, isObject } from '../../shared/text/json.ts'
import { resultTexts } from '../../shared/text/result-texts.ts'
import { jsonInText } from '../json/json-in-text.ts'

export const ADD_TASKS = 'add_tasks'

/** The text that a command writes for people. */
const FOR_PEOPLE = 'stderr'

/**
 * The value of `add_tasks` in a result: in the result itself, in the structured answer of an MCP server, or in a text that is the
 * JSON of an object, such as the stdout of a command or the body of an answer over HTTP. Undefined if there is none. The fault is
 * that of a text which mentions the name and is no JSON.
 */
export function* addedTasks(
  result: unknown,
): Steps<{ readonly tasks: unknown } | { readonly fault: string } | undefined> {
  const { structuredContent, truncated } = isObject(result) ? result : {}
  const found = [result, structuredContent].map(tasksIn).find(isGiven)
  if (found !== undefined) return { tasks: found }
  for (const [name, text] of resultTexts(result)) {
    if (name === FOR_PEOPLE || !text.includes(`"${ADD_TASKS}"`)) continue
    const json = yield* jsonInText(text)
    if (typeof json === 'string') return { fault: `${name} ${json}${truncated === true ? ' (it was cut off)' : ''}` }
    const tasks = tasksIn(json.value)
    if (isGiven(tasks)) return { tasks }
  }
  return undefined
}

const tasksIn = (value: unknown): unknown =>
  isObject(value) && Object.hasOwn(value, ADD_TASKS) ? value[ADD_TASKS] : undefined

/**
 * A fault of a graph whose tasks from the one with the index `first` on are added, at its place in the result. `index` is that of the
 * added task that it belongs to, if that is known.
 */
export function placedFault(message: string, first: number, index: number | undefined): string {
  const [, at, path = '', text] = /^invalid JSON: tasks\[(\d+)\](\S*?): (.*)$/s.exec(message) ?? []
  if (at !== undefined)
    return `${ADD_TASKS}/${Number(at) - first}${path.replaceAll(/[.[]/g, '/').replaceAll(']', '')}: ${text}`
  return index === undefined ? `${ADD_TASKS}: ${message}` : `${ADD_TASKS}/${index}: ${message}`
}
