/**
 * The directory of a task, `<dataDir>/tasks/<task_id>/`: its request, its result, its output and its workspace.
 *
 * Only its owner may look into it (0700).
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/errors.ts'

export interface TaskDir {
  readonly task_dir: string
  readonly request_path: string
  readonly result_path: string
  readonly stdout_path: string
  readonly stderr_path: string
  readonly script_path: string
  readonly workspace: string
}

/** Absolute paths of the task's files; `dataDir` is absolute, `taskId` was checked (no separators, not `.` or `..`). */
export function taskDir(dataDir: string, taskId: string): TaskDir {
  const task_dir = `${dataDir}/tasks/${taskId}`
  return {
    task_dir,
    request_path: `${task_dir}/request.json`,
    result_path: `${task_dir}/result.json`,
    stdout_path: `${task_dir}/stdout.log`,
    stderr_path: `${task_dir}/stderr.log`,
    script_path: `${task_dir}/script`,
    workspace: `${task_dir}/workspace`,
  }
}

export const tasksDir = (dataDir: string): string => join(dataDir, 'tasks')

export interface TaskDirContent {
  /** The request as it was accepted, JSON. */
  readonly request: string
  /** The body of a script, or undefined for a command. */
  readonly script: string | undefined
  /** Below the workspace; empty for the workspace itself. */
  readonly workspaceSubdir: string
}

/** Makes the directory with all that a launch needs. Nothing of it is left when that fails. */
export function makeTaskDir(dir: TaskDir, { request, script, workspaceSubdir }: TaskDirContent): void {
  // Whatever has this name belongs to no task any more: tasks are looked up first.
  if (!tryMkdir(dir.task_dir)) {
    removeTaskDirNow(dir)
    mkdirSync(dir.task_dir, { mode: 0o700 })
  }
  try {
    mkdirSync(dir.workspace, { mode: 0o700 })
    if (workspaceSubdir !== '') mkdirSync(join(dir.workspace, workspaceSubdir), { mode: 0o700, recursive: true })
    writeFileSync(dir.request_path, request, { mode: 0o600 })
    if (script !== undefined) writeFileSync(dir.script_path, script, { mode: 0o700 })
    writeFileSync(dir.stdout_path, '', { mode: 0o600 })
    writeFileSync(dir.stderr_path, '', { mode: 0o600 })
  } catch (error) {
    removeTaskDirNow(dir)
    throw error
  }
}

function tryMkdir(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 })
    return true
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Removes the directory of a task that never was, before anybody can take its id. */
export const removeTaskDirNow = ({ task_dir }: TaskDir): void => rmSync(task_dir, { recursive: true, force: true })

/** Where directories go whose names others may take while they are removed. */
const trashDir = (dataDir: string): string => join(dataDir, 'trash')

/** Frees the name of a directory that no task has, at once; what it holds goes with `emptyTrash`. */
export function discardTaskDir(dataDir: string, name: string): void {
  mkdirSync(trashDir(dataDir), { mode: 0o700, recursive: true })
  renameSync(join(tasksDir(dataDir), name), join(trashDir(dataDir), crypto.randomUUID()))
}

export const emptyTrash = (dataDir: string): Promise<void> => rm(trashDir(dataDir), { recursive: true, force: true })

/** Removes a directory that nothing runs in. */
export const removeTaskDir = (dir: TaskDir): Promise<void> => rm(dir.task_dir, { recursive: true, force: true })
