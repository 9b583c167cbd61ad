/** Files that a task gets before it starts, by the path in its own workspace: those of other tasks, or given contents. Pure. */
import { isSha256 } from '../contract/file-bundles.ts'
import type { RequestedInput } from '../contract/task-inputs.ts'
import { isObject } from '../text/json.ts'
import { requestFault } from './fault.ts'
import { checkedNames, namesIn } from './secrets.ts'
import { checkUnicode, shortened } from './text.ts'

/** Inputs of one task: a file of each child of the largest fan-out. */
export const MAX_INPUTS = 10_000

/** Stands for a whole workspace. */
export const WHOLE_WORKSPACE = '.'

/** Files of another task of the same service. */
export interface TaskFiles {
  readonly task_id: string
  readonly file: string
}

/** A bundle from another service. */
export interface StagedFiles {
  readonly staged: string
}

/** The text of a file. */
export interface GivenContent {
  readonly content: string
}

/** An input of a request, with the hash of its content if the task takes no other content. */
export type InputSource = (TaskFiles | StagedFiles | GivenContent) & { readonly sha256?: string }

/** By path in the workspace of the task. */
export type TaskInputs = Readonly<Record<string, InputSource>>

/** Details of an error about an input whose task is not there, or was removed with its files. */
export const ofMissingTask = (missing_task: string) => ({ field: 'inputs', missing_task })

/** The id of the task that is not there; undefined for details of another error. */
export const missingTaskIn = (details: unknown): string | undefined =>
  isObject(details) && details.field === 'inputs' && typeof details.missing_task === 'string'
    ? details.missing_task
    : undefined

/** Details of an error about a staged bundle that is not there. */
export const ofMissingBundle = (missing_bundle: string) => ({ field: 'inputs', missing_bundle })

/** Whether the error of these details is about a staged bundle that is not there. */
export const isMissingBundle = (details: unknown): boolean =>
  isObject(details) && details.field === 'inputs' && typeof details.missing_bundle === 'string'

/** The names of a valid path below a workspace. */
export const namesOfFile = (file: string): readonly string[] => namesIn(file)

/** Throws `RequestFault` with the first fault. `isTaskId` checks the form of an id. */
export function validInputs(
  given: Readonly<Record<string, RequestedInput>>,
  ownId: string,
  isTaskId: (id: string) => boolean,
): TaskInputs {
  const entries = Object.entries(given)
  if (entries.length > MAX_INPUTS) {
    throw requestFault(`inputs has ${entries.length} entries (a task has at most ${MAX_INPUTS})`)
  }
  const paths = new Map<string, string>()
  const inputs: [string, InputSource][] = []
  for (const [path, input] of entries) {
    const sha256 = input.sha256 ?? undefined // null means absent
    const at = `inputs.${shortened(path)}`
    const names = checkedPath(at, path)
    const other = paths.get(names)
    if (other !== undefined) throw requestFault(`${at} is in the place of ${other}`)
    paths.set(names, at)
    const source = validSource(at, input, ownId, isTaskId)
    if (sha256 !== undefined) checkHash(`${at}.sha256`, sha256)
    inputs.push([path, { ...source, ...(sha256 !== undefined && { sha256 }) }])
  }
  checkNesting(paths)
  return Object.fromEntries(inputs)
}

function validSource(
  at: string,
  { task_id, file, staged, content }: RequestedInput,
  ownId: string,
  isTaskId: (id: string) => boolean,
): TaskFiles | StagedFiles | GivenContent {
  if (content != null) {
    if (task_id != null || file != null || staged != null)
      throw requestFault(`${at}.content excludes task_id, file and staged`)
    checkUnicode(`${at}.content`, content)
    return { content }
  }
  if (staged != null) {
    if (task_id != null || file != null) throw requestFault(`${at}.staged excludes task_id and file`)
    checkHash(`${at}.staged`, staged)
    return { staged }
  }
  if (task_id == null || file == null)
    throw requestFault(`${at}: expected object with task_id and file, or with content`)
  if (!isTaskId(task_id)) throw requestFault(`${at}.task_id is no id of a task: ${shortened(task_id)}`)
  if (task_id === ownId) throw requestFault(`${at}.task_id is the task itself`)
  checkFile(`${at}.file`, file)
  return { task_id, file }
}

function checkHash(at: string, hash: string): void {
  if (!isSha256(hash)) throw requestFault(`${at} must have 64 hexadecimal digits, in lower case`)
}

/** Throws `RequestFault` for a `file` that does not lead below the workspace of its task. */
export function checkFile(at: string, file: string): void {
  if (file !== WHOLE_WORKSPACE) checkedPath(at, file)
}

/** The path with single slashes. One at the end may stand for a directory. */
const checkedPath = (at: string, path: string): string => checkedNames(at, path.replace(/(?<=.)\/+$/, '')).join('/')

function checkNesting(paths: ReadonlyMap<string, string>): void {
  for (const [path, at] of paths) {
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) {
      const outer = paths.get(path.slice(0, slash))
      if (outer !== undefined) throw requestFault(`${at} lies within ${outer}`)
    }
  }
}
