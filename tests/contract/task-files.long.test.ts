/**
 * Goal: an artefact of 200 MB, and a directory with one, are fetched with the client alone, over cut connections and a killed
 * client, control and runtime service, and no byte comes twice without need; control needs little memory for it. Method: a link
 * between client and control that stops and is cut; hashes that the task made.
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

  const most = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
  expect(most - before).toBeLessThan(100 * MB)
}, 240_000)

test('a directory through kills of client, control and runtime service', async () => {
  await using pair = await startPair()
  await using link = slowLink(() => pair.control.url)
  using temp = tempDir()
  const long = 'n'.repeat(150)
  const script = `mkdir -p d/a/${long} d/empty; cd d; for n in 0 1 511 512 513; do head -c $n /dev/urandom > a/${long}/$n; done
    head -c ${BYTES} /dev/urandom > big; head -c 30000000 /dev/urandom > z; ln -s / root; ln -s big link
    find . -type f | sort | xargs sha256sum`
  await pair.script('a', script)
  const { stdout } = (await pair.control.ended('a')).result as { stdout: string }
  const partBytes = () => {
    const part = readdirSync(temp.path).find((name) => name.endsWith('.tar.part'))
    return part === undefined ? 0 : statSync(join(temp.path, part)).size
  }
  const env = testEnvironment({ SERVICE_URL: link.url, XDG_STATE_HOME: '/nonexistent' })
  const started = async () =>
    Bun.spawn([await builtProgram('taskmill'), 'cp', 'a:d', temp.path], { env, stdout: 'pipe', stderr: 'ignore' })
  /**
   * Stops the answers after 40 MB more, lets `end` end something, and lets them go on. What `end` ends, the client may ask for
   * again before they go on.
   */
  const interrupted = async (end: () => Promise<unknown>) => {
    const before = partBytes()
    const release = link.stopAfter(40 * MB)
    await until(partBytes, (bytes) => bytes > before + 25 * MB)
    await end()
    release()
  }

  const killed = await started()
  await interrupted(async () => {
    killed.kill('SIGKILL')
    await killed.exited
    link.cut()
  })
  const left = partBytes()
  const client = await started()
  await interrupted(async () => {
    await pair.stopRuntime('SIGKILL')
    await pair.startRuntime()
  })
  await interrupted(async () => {
    await pair.stopControl('SIGKILL')
    await pair.startControl()
  })
  const { data } = (await new Response(client.stdout).json()) as { data: unknown }
  const bytes = BYTES + 30_000_000 + 0 + 1 + 511 + 512 + 513
  expect(data).toEqual({ path: join(temp.path, 'd'), type: 'directory', bytes, files: 7, resumed_at: left })
  expect(readdirSync(temp.path)).toEqual(['d'])
  expect(readdirSync(join(temp.path, 'd')).toSorted()).toEqual(['a', 'big', 'empty', 'z'])
  const sums = Bun.spawnSync(['sh', '-c', 'find . -type f | sort | xargs sha256sum'], { cwd: join(temp.path, 'd') })
  expect(sums.stdout.toString()).toBe(stdout)
  const moved = link.exchanges.reduce((sum, exchange) => sum + exchange.bytes, 0)
  expect(moved).toBeLessThan(bytes + 60 * MB) // what was on its way at a cut comes again
}, 240_000)
