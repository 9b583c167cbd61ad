/** Goal: the small Debian is made once, and what it lacks is told. Making it is for the tests that build images of it. */
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/deploy-files.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

async function debianBase(env: Record<string, string>) {
  const child = Bun.spawn([join(ROOT, 'scripts/debian-base')], {
    env: testEnvironment(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('an archive that is there is taken', async () => {
  using cache = tempDir()
  const archive = join(cache.path, 'taskmill/debian-bookworm-minbase.tar')
  mkdirSync(join(cache.path, 'taskmill'))
  writeFileSync(archive, '')
  expect(await debianBase({ XDG_CACHE_HOME: cache.path })).toEqual({ exitCode: 0, stdout: `${archive}\n`, stderr: '' })
})

test('without debootstrap it says so', async () => {
  using cache = tempDir()
  expect(await debianBase({ XDG_CACHE_HOME: cache.path, PATH: '/usr/bin:/bin' })).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: 'debian-base: debootstrap is not in PATH (Debian: debootstrap)\n',
  })
})
