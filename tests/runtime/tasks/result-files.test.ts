/** Goal: the result of a task appears whole, once its end is durable, whatever stands in its way. Method: files of one task. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { makeTaskDir, taskDir } from '../../../runtime/files/task-dir.ts'
import { NO_EVENTS } from '../../../runtime/store/events.ts'
import { LiveTask } from '../../../runtime/store/live-task.ts'
import { ResultFiles } from '../../../runtime/tasks/result-files.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'
import { tempDir } from '../../support/temp.ts'

function resultFiles() {
  const temp = tempDir()
  const { log, texts } = memoryLog()
  mkdirSync(join(temp.path, 'tasks'))
  const dir = taskDir(temp.path, 'task-1')
  makeTaskDir(dir, { request: '{}', script: undefined, workspaceSubdir: '' })
  const task = new LiveTask({ ...acceptedRow('task-1'), ordinal: 1 }, NO_EVENTS)
  const files = new ResultFiles(temp.path, log)
  const result = () => (existsSync(dir.result_path) ? JSON.parse(readFileSync(dir.result_path, 'utf8')) : undefined)
  return { dir, task, files, result, texts, [Symbol.dispose]: () => temp[Symbol.dispose]() }
}

test('it is drafted first, and appears when it is written', () => {
  using at = resultFiles()
  at.files.prepare(at.task, at.task.row)
  expect([existsSync(join(at.dir.task_dir, 'result.new')), at.result()]).toEqual([true, undefined])
  at.files.write(at.task)
  expect([existsSync(join(at.dir.task_dir, 'result.new')), at.result().task_id]).toEqual([false, 'task-1'])
  expect(at.texts).toEqual([])
})

test('it is written again where its draft could not be made', () => {
  using at = resultFiles()
  const inTheWay = join(at.dir.task_dir, 'result.new')
  mkdirSync(inTheWay)
  at.files.prepare(at.task, at.task.row)
  at.files.write(at.task)
  expect([at.result(), at.texts.length]).toEqual([undefined, 1])
  rmSync(inTheWay, { recursive: true })
  at.files.writeAgain()
  expect(at.result().task_id).toBe('task-1')
})

test('it is written whole where its draft is gone', () => {
  using at = resultFiles()
  at.files.prepare(at.task, at.task.row)
  rmSync(join(at.dir.task_dir, 'result.new'))
  at.files.write(at.task)
  at.files.writeAgain()
  expect(at.result().task_id).toBe('task-1')
})
