/**
 * Goal: a directory has one service, also while what a killed one left behind is still at work, and who is in the way is
 * named. Method: processes that take the lock, hand it on and are killed.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lockDirectory } from '../../../shared/files/directory-lock.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

/** Takes the lock, starts a process that has it too, and says so. */
const HOLDER = `
  import { lockDirectory } from './shared/files/directory-lock.ts'
  const [directory, ...heir] = process.argv.slice(1)
  const fd = lockDirectory(directory, 'lock')
  Bun.spawn(heir, { stdio: ['ignore', 'ignore', 'ignore', fd], detached: true })
  console.log('ready')
  setInterval(() => {}, 1000)`

/** A process that has the lock, and one that it handed it on to. */
async function holder(dir: TempDir, heir: readonly string[]) {
  const child = Bun.spawn([process.execPath, '-e', HOLDER, dir.path, ...heir], {
    cwd: join(import.meta.dir, '../../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const chunk of child.stdout) if (new TextDecoder().decode(chunk).includes('ready')) break
  return child
}

test('a lock names who has it', async () => {
  using dir = tempDir()
  const child = await holder(dir, ['/bin/true'])
  expect(readFileSync(join(dir.path, 'lock'), 'utf8')).toBe(`${child.pid}\n`)
  expect(() => lockDirectory(dir.path, 'lock')).toThrow(`is in use by the process ${child.pid}: stop it`)
  child.kill('SIGKILL')
  await child.exited
  expect(lockDirectory(dir.path, 'lock')).toBeGreaterThan(2)
  expect(readFileSync(join(dir.path, 'lock'), 'utf8')).toBe(`${process.pid}\n`)
})

test('a start waits for what a killed service left running', async () => {
  using dir = tempDir()
  // Longer than a start waits for a service that lives.
  const child = await holder(dir, ['/bin/sleep', '1'])
  child.kill('SIGKILL')
  await child.exited
  expect(lockDirectory(dir.path, 'lock')).toBeGreaterThan(2)
})

test('but not for ever', async () => {
  using dir = tempDir()
  const child = await holder(dir, ['/bin/sh', '-c', 'echo $$ > "$0"; exec sleep 600', join(dir.path, 'heir')])
  child.kill('SIGKILL')
  await child.exited
  expect(() => lockDirectory(dir.path, 'lock')).toThrow(
    `is in use by what the process ${child.pid} left running: stop it`,
  )
  process.kill(Number(readFileSync(join(dir.path, 'heir'), 'utf8')), 'SIGKILL')
})

test('the lock of a directory that its holder removes meanwhile is none', async () => {
  using dir = tempDir()
  const lock = join(dir.path, 'lock')
  // Removes the file once this process has it open and waits for the lock.
  const heir = `until ls -l /proc/${process.pid}/fd | grep -q "$0"; do :; done; exec rm "$0"`
  const child = await holder(dir, ['/bin/sh', '-c', heir, lock])
  child.kill('SIGKILL')
  await child.exited
  expect(() => lockDirectory(dir.path, 'lock')).toThrow(`${dir.path} was removed by a start that was refused`)
})
