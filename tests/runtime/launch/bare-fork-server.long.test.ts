/**
 * Goal: every line of a fork server comes, once, and what it was asked for is done whether or not its service is there to hear
 * of it. Method: fork servers without a service, whose pipe is full, closed or cut off.
 */
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { taskDirId } from '../../../runtime/files/task-dir.ts'
import { isLauncherAlive, readRecord } from '../../../runtime/launch/launcher-files.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { makeFifo } from '../../support/fifo.ts'
import { BareForkServer } from '../../support/fork-servers.ts'
import { complaintOf, describeLaunchers, sh, shippedLauncher } from '../../support/launchers.ts'
import { childrenOf, stopProcess } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { missingTrace } from '../../support/trace.ts'
import { isAlive, until } from '../../support/until.ts'

const { EAGAIN, ENOENT } = constants.errno

const whyNoTrace = missingTrace === undefined ? '' : ` (skipped: ${missingTrace})`

const isRoot = process.getuid?.() === 0

describeLaunchers(
  'a fork server without its service',
  (variant) => {
    test('starts what it was asked for, then ends; its launchers do not, and hold nothing of it', async () => {
      using dir = tempDir()
      const lock = () => openSync(join(dir.path, 'lock'), 'a')
      const [its, mine] = [lock(), lock()]
      await using forkServer = new BareForkServer(variant, { inherited: [its] })
      expect(tryLock(its)).toBe(true)
      closeSync(its)
      await stopProcess(forkServer.pid)
      const ids = Array.from({ length: 10 }, (_, i) => `task-${i}`)
      const whole = ids.map((id) => forkServer.request(id, sh('echo ran >> ran; exec sleep 600')))
      forkServer.write(...whole, forkServer.request('cut', ['/bin/true']).subarray(0, -1))
      forkServer.process.stdin.end()
      expect(tryLock(mine)).toBe(false)
      process.kill(forkServer.pid, 'SIGCONT')
      expect(await forkServer.process.exited).toBe(0)
      // At once, before any program runs, each has its lock.
      expect(ids.map((id) => isLauncherAlive(forkServer.dirOf(id)))).toEqual(ids.map(() => true))
      expect([isLauncherAlive(forkServer.dirOf('cut')), readRecord(forkServer.dirOf('cut'))]).toEqual([false, {}])
      await forkServer.hears('started', 10)
      expect(tryLock(mine)).toBe(true)
      closeSync(mine)
      const ran = ids.map((id) => join(forkServer.dirOf(id), 'ran'))
      await until(() => ran.filter((path) => existsSync(path) && readFileSync(path, 'utf8') === 'ran\n').length, 10)
    })

    test('starts nothing in the directory of a new task of the same id, and does not keep that from starting', async () => {
      await using forkServer = new BareForkServer(variant)
      await stopProcess(forkServer.pid)
      const path = forkServer.dirOf('task-1')
      const asked = (launch: number, text: string): Buffer => {
        rmSync(path, { recursive: true, force: true })
        mkdirSync(path)
        writeFileSync(join(path, 'request.json'), text)
        return forkServer.request('task-1', sh(`echo ${launch} >> ran`), launch, { task_dir_id: taskDirId(path)! })
      }
      forkServer.write(asked(1, 'of the old task'), asked(2, 'of the new task'))
      process.kill(forkServer.pid, 'SIGCONT')
      expect((await forkServer.hears('gone', 2)).sort()).toEqual(['gone task-1 1 125', 'gone task-1 2 0'])
      expect(readFileSync(join(path, 'ran'), 'utf8')).toBe('2\n')
      // A fault would be taken for that of the new task.
      expect(forkServer.said).not.toContain('failed')
      forkServer.process.stdin.end()
      expect(await forkServer.complaints).toMatch(complaintOf('task_dir'))
    })

    test('tells of every end, though its pipe was full when it came', async () => {
      await using forkServer = new BareForkServer(variant)
      const filler = Buffer.alloc(4_096, 'x')
      expect(() => {
        for (;;) writeSync(forkServer.notifyFd, filler)
      }).toThrow('EAGAIN')
      const requests = Array.from({ length: 5 }, (_, i) => forkServer.request(`task-${i}`, sh(`exit ${i}`), 100 + i))
      const lost = forkServer.request('lost', ['/bin/true'], 200, { task_dir: '/no/such/dir' })
      forkServer.write(...requests, lost)
      await until(
        // After its outcome a launcher still writes a line, which must be lost, too.
        () =>
          [0, 1, 2, 3, 4]
            .map((i) => forkServer.dirOf(`task-${i}`))
            .filter((dir) => existsSync(join(dir, 'outcome')) && !isLauncherAlive(dir)).length,
        (ended) => ended === 5,
      )
      const lines = await until(
        () => forkServer.said.replaceAll('x', '').trim().split('\n'),
        (said) => said.length === 7,
      )
      expect(lines.toSorted()).toEqual(
        [
          `failed lost task_dir ${ENOENT}`,
          ...Array.from({ length: 5 }, (_, i) => `gone task-${i} ${100 + i} ${i}`),
          'gone lost 200 125',
        ].toSorted(),
      )
      expect(lines.indexOf('gone lost 200 125')).toBeGreaterThan(lines.indexOf(`failed lost task_dir ${ENOENT}`))
    })

    test('hears of ends though whoever started it cares for none', async () => {
      await using forkServer = new BareForkServer(variant, { through: ['env', '--ignore-signal=CHLD'] })
      forkServer.write(forkServer.request('task-1', sh('exit 4'), 9))
      expect(await forkServer.hears('gone')).toEqual(['gone task-1 9 4'])
    })

    test('starts none where the lock is taken', async () => {
      await using forkServer = new BareForkServer(variant)
      const request = forkServer.request('task-1', sh('echo ran >> ran'), 3)
      const lock = openSync(forkServer.dirOf('task-1'), 'r')
      expect(tryLock(lock)).toBe(true)
      forkServer.write(request)
      await forkServer.hears('gone')
      closeSync(lock)
      expect(forkServer.said).toBe(`failed task-1 lock ${EAGAIN}\ngone task-1 3 125\n`)
      expect(readdirSync(forkServer.dirOf('task-1'))).toEqual([])
    })
  },
  { isPortableIncluded: false },
)

describe('a fork server that may not fork', () => {
  const why = isRoot ? '' : ' (skipped: only root may become a user who has no process yet)'
  test.skipIf(!isRoot)(`says so${why}`, async () => {
    using dir = tempDir()
    const program = join(dir.path, 'launcher')
    copyFileSync(shippedLauncher.command[0]!, program)
    for (const path of [dir.path, program]) chmodSync(path, 0o755)
    const variant = { command: [program], isPortable: false }
    // A user of whom the machine has no process: the fork server is its one and only.
    const uid = 3_141_592
    const through = ['prlimit', '--nproc=1', 'setpriv', `--reuid=${uid}`, '--clear-groups']
    await using forkServer = new BareForkServer(variant, { through })
    const request = forkServer.request('task-1', ['/bin/true'], 5)
    for (const path of [forkServer.dirOf('.'), forkServer.dirOf('task-1')]) chownSync(path, uid, uid)
    forkServer.write(request)
    await forkServer.hears('gone')
    expect(forkServer.said).toBe(`failed task-1 fork ${EAGAIN}\ngone task-1 5 125\n`)
  })
})

// A checker for leaks does not go with a tracer.
describe('a fork server that is watched', () => {
  test.skipIf(missingTrace !== undefined)(
    `leaves the sync of outcomes to its service while it has one${whyNoTrace}`,
    async () => {
      using dir = tempDir()
      const syncs = join(dir.path, 'syncs')
      const gone = join(dir.path, 'gone')
      const through = ['strace', '-f', '-qq', '-o', syncs, '-e', 'trace=fdatasync']
      await using forkServer = new BareForkServer(shippedLauncher, { through })
      makeFifo(gone)
      const waits = sh(`read line < ${gone}`)
      forkServer.write(forkServer.request('task-1', sh('exit 4'), 1), forkServer.request('task-2', waits, 2))
      expect(await forkServer.hears('gone')).toEqual(['gone task-1 1 4'])
      await forkServer.hears('started task-2')
      expect(readFileSync(syncs, 'utf8')).toBe('')
      const { launcher_pid } = readRecord(forkServer.dirOf('task-2')).process!
      const [traced] = childrenOf(forkServer.pid)
      forkServer.process.stdin.end()
      await until(() => isAlive(traced!), false)
      writeFileSync(gone, '\n')
      await until(
        () => readFileSync(syncs, 'utf8'),
        (calls) => new RegExp(`^${launcher_pid} +fdatasync`, 'm').test(calls),
      )
    },
  )
})
