/** Schedules in files: what takes a look into the directory without a notice, or very many files. */
import { expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { MAX_SCHEDULE_FILES } from '../../control/schedules/schedule-files.ts'
import { listed, place, schedule, YEARLY, yaml } from '../support/schedule-files.ts'
import { until } from '../support/until.ts'

test('more than MAX_SCHEDULE_FILES files are not read, and the first one of them says so', async () => {
  using here = place()
  for (let i = 0; i < MAX_SCHEDULE_FILES + 2; i++) here.write(`${String(i).padStart(5, '0')}.yaml`, 'tasks: []')
  await using control = await here.start()
  const files = await until(
    () => listed(control),
    (found) => found.length > MAX_SCHEDULE_FILES,
  )
  expect(files.at(-1)).toEqual({
    file: `${String(MAX_SCHEDULE_FILES).padStart(5, '0')}.yaml`,
    error: `there are more than ${MAX_SCHEDULE_FILES} files: those after it are not read either`,
  })
})

test('the directory goes away for a while: the schedules stay, and it is told once', async () => {
  using here = place()
  here.write('a.yaml', yaml(`{${YEARLY}}`))
  await using control = await here.start()
  await schedule(control, 'a')
  renameSync(here.files, `${here.files}.away`)
  await until(() => control.log.some(({ msg }) => msg === 'the directory of schedules cannot be read'))
  expect((await schedule(control, 'a')).file).toBe('a.yaml')
  renameSync(`${here.files}.away`, here.files)
}, 40_000)
