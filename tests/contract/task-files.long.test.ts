/**
 * Goal: an artefact of 200 MB is fetched with the client alone, over cut connections and a killed client, and control needs
 * little memory for it. Method: a link between client and control that is cut; the hash that the task made.
 */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { runClient } from '../support/client.ts'
import { footprintOf } from '../support/footprint.ts'
import { startPair } from '../support/pair.ts'
import { testEnvironment } from '../support/service.ts'
import { slowLink } from '../support/slow-link.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const BYTES = 200_000_000
const MB = 1e6

test('200 MB through cuts', async () => {
  await using pair = await startPair()
  await using link = slowLink(() => pair.control.url)
  using temp = tempDir()
  const { control } = pair
  await pair.script('a', `mkdir d; head -c ${BYTES} /dev/urandom > d/big; sha256sum d/big`)
  const { stdout } = (await control.ended('a')).result as { stdout: string }
  const pid = control.process.pid
  const before = footprintOf(pid).bytes
  const partBytes = () => {
    const part = readdirSync(temp.path).find((name) => name.endsWith('.part'))
    return part === undefined ? 0 : statSync(join(temp.path, part)).size
  }

  let release = link.stopAfter(60 * MB)
  const env = testEnvironment({ SERVICE_URL: link.url, XDG_STATE_HOME: '/nonexistent' })
  const killed = Bun.spawn([await builtProgram('taskmill'), 'cp', 'a:d/big', temp.path], { env, stdout: 'ignore' })
  await until(partBytes, (bytes) => bytes > 40 * MB)
  killed.kill('SIGKILL')
  await killed.exited
  link.cut()
  release()

  release = link.stopAfter(60 * MB)
  const left = partBytes()
  const copied = runClient(['cp', 'a:d/big', temp.path], { url: link.url })
  await until(partBytes, (bytes) => bytes > left + 40 * MB)
  link.cut()
  release()
  const { exitCode, envelope } = await copied
  expect([exitCode, envelope.data]).toEqual([
    ...[0, { path: join(temp.path, 'big'), type: 'file', bytes: BYTES, files: 1, resumed_at: left }],
  ])
  const hash = (path: string) => new Bun.CryptoHasher('sha256').update(readFileSync(path)).digest('hex')
  expect(hash(join(temp.path, 'big'))).toBe(stdout.split(' ')[0]!)

  const directory = await runClient(['cp', 'a:d', temp.path], { url: control.url })
  expect(directory.envelope.data).toMatchObject({ type: 'directory', bytes: BYTES, files: 1 })
  expect(hash(join(temp.path, 'd/big'))).toBe(stdout.split(' ')[0]!)

  const most = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
  expect(most - before).toBeLessThan(100 * MB)
}, 240_000)
