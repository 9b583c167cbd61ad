/** A directory of schedules for tests, and what services make of it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Schedule, type ScheduleFile } from '../../shared/contract/schedules.ts'
import { checkedAnswer } from './answer-check.ts'
import { type Control, startControl } from './control.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

export const TASKS = 'tasks: [{id: a, type: noop}]\n'
export const yaml = (schedule: string, more = TASKS) => `schedule: ${schedule}\n${more}`
export const YEARLY = 'cron: "0 0 1 1 *"'

/** A directory, and services on the same data that watch it. */
export function place() {
  const dir = tempDir()
  const files = join(dir.path, 'schedules')
  mkdirSync(files)
  const at = (file: string) => join(files, file)
  return {
    files,
    at,
    write: (file: string, text: string) => writeFileSync(at(file), text),
    start: (...flags: string[]) =>
      startControl({ dataDir: join(dir.path, 'data'), flags: ['--schedules-dir', files, ...flags] }),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

export const listed = async (control: Control): Promise<ScheduleFile[]> =>
  (await (await control.fetch('/schedule-files')).json()) as ScheduleFile[]

/** Resolves once the files are these, of whatever replica. */
export const asFiles = (control: Control, files: readonly object[]) =>
  until(
    async () => (await listed(control)).map(({ replica: _, ...file }) => file),
    (found) => Bun.deepEquals(found, [...files]),
  )

export async function schedule(control: Control, name: string): Promise<Schedule> {
  const response = await until(
    () => control.fetch(`/schedules/${name}`),
    ({ status }) => status === 200,
  )
  return checkedAnswer(Schedule, await response.json())
}
