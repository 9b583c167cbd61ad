/**
 * Goal: a launcher that takes one task after the other has nothing of an earlier one, and harms neither. Method: a real
 * fork server and tasks that come one by one, so that each finds a launcher that waits.
 */
import { expect, test } from 'bun:test'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync, writeFileSync } from 'node:fs'
import { availableParallelism, constants } from 'node:os'
import { join } from 'node:path'
import { signalIf } from '../../../runtime/host/pidfd.ts'
import { KILL_SIGNAL } from '../../../runtime/launcher/kill-signal.ts'
import { isLauncherAlive, readRecord } from '../../../runtime/launcher/launcher-files.ts'
import type { LaunchedProcess, Outcome } from '../../../runtime/launcher/outcome.ts'
import { markedProcesses } from '../../../shared/processes.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { LauncherService, type StartedTask } from '../../support/launcher-service.ts'
import { describeLaunchers, sh, shippedLauncher, taskEnv } from '../../support/launchers.ts'
import { childrenOf, gone, stopProcess } from '../../support/task-processes.ts'
import { isAlive, until } from '../../support/until.ts'
import { withoutPidfd } from '../../support/without-pidfd.ts'

const { SIGTERM } = constants.signals

/** Whether `text` is in what a process may write of its memory. */
function memoryHolds(pid: number, text: string): boolean {
  const memory = openSync(`/proc/${pid}/mem`, 'r')
  const ranges = readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^([0-9a-f]+)-([0-9a-f]+) rw/gm)
  const holds = [...ranges].some(([, from, to]) => {
    const [begin, end] = [Number.parseInt(from!, 16), Number.parseInt(to!, 16)]
    if (end - begin > MAX_RANGE_BYTES) return false // of a checker: bits about the rest
    const bytes = Buffer.alloc(end - begin)
    return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, begin)).includes(text)
  })
  closeSync(memory)
  return holds
}
const MAX_RANGE_BYTES = 2 ** 27

/** What a task can do to its launcher from outside, and what of that its children would have. */
const MEDDLING = [
  'renice -n 15 -p $PPID',
  'echo 900 > /proc/$PPID/oom_score_adj',
  ...(availableParallelism() > 1 ? ['taskset -p 1 $PPID'] : []),
  'prlimit --pid $PPID --nofile=100:100',
  'ionice -c 3 -p $PPID',
  'chrt --batch -p 0 $PPID',
]
const CONDITION =
  'nice; cat /proc/self/oom_score_adj; taskset -p $$ | tail -c 3; ulimit -n; ionice -p $$; chrt -p $$ | tail -n 2 | cut -d: -f2'

describeLaunchers('a launcher that waits for another task', cases, { isPortableIncluded: false })

function cases(variant: Parameters<Parameters<typeof describeLaunchers>[1]>[0]) {
  const service = () => new LauncherService({ variant })

  const endOf = async ({ dir, gone }: StartedTask): Promise<{ process: LaunchedProcess; outcome: Outcome }> => {
    await gone
    const { process, outcome } = readRecord(dir)
    return { process: process!, outcome: outcome! }
  }

  test('takes it, whatever became of the one before', async () => {
    await using our = service()
    const scripts = [
      'exit 0',
      'exit 3',
      'kill -KILL $$',
      '(setsid sleep 600 &) ; exit 4',
      'exec /no/such/program',
      'exit 5',
    ]
    const launchers = new Set<number>()
    const endings: unknown[] = []
    for (const [i, script] of scripts.entries()) {
      const { process, outcome } = await endOf(our.start(`task-${i}`, sh(script)))
      launchers.add(process.launcher_pid)
      endings.push([outcome.ending, outcome.leftovers_killed])
    }
    expect(endings).toEqual([
      [{ how: 'exited', exit_code: 0 }, 0],
      [{ how: 'exited', exit_code: 3 }, 0],
      [{ how: 'signaled', signal: constants.signals.SIGKILL }, 0],
      [{ how: 'exited', exit_code: 4 }, 1],
      [{ how: 'exited', exit_code: 127 }, 0],
      [{ how: 'exited', exit_code: 5 }, 0],
    ])
    expect(launchers.size).toBe(1)
    expect(our.complaints()).toBe('')
  })

  test('ends when its task could not be started, and another comes', async () => {
    await using our = service()
    const first = await endOf(our.start('first', ['/bin/true']))
    const { ending } = (await endOf(our.start('none', ['/no/such/program']))).outcome
    expect(ending).toMatchObject({ how: 'launch_failed', step: 'exec' })
    await gone(first.process.launcher_pid)
    const { process, outcome } = await endOf(our.start('next', sh('exit 6')))
    expect(outcome.ending).toEqual({ how: 'exited', exit_code: 6 })
    expect(process.launcher_pid).not.toBe(first.process.launcher_pid)
  })

  test('has nothing of the one before: no name, no mark, no descriptor, no variable', async () => {
    await using our = service()
    const env = { ...taskEnv, SECRET: 'of the first', TASKMILL_TASK: 'mark-of:first' }
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true'], env))).process
    const names = () =>
      readdirSync(`/proc/${launcher_pid}/fd`)
        .map((fd) => Number(fd))
        .toSorted((a, b) => a - b)
    const before = names()
    expect(readFileSync(`/proc/${launcher_pid}/cmdline`, 'utf8')).not.toContain('first')
    expect(markedProcesses('TASKMILL_TASK=mark-of:first\0')).toEqual([])
    const second = our.start('second', sh('env > environment; echo second'), {
      ...taskEnv,
      TASKMILL_TASK: 'mark-of:second',
    })
    expect((await endOf(second)).process.launcher_pid).toBe(launcher_pid)
    expect(readFileSync(join(second.dir, 'environment'), 'utf8')).not.toContain('SECRET')
    expect(readFileSync(join(second.dir, 'stdout.log'), 'utf8')).toBe('second\n')
    expect(names()).toEqual(before)
  })

  test('has no secret of an earlier one, though that was longer, and its fork server neither', async () => {
    await using our = service()
    const secret = 'secret-of-first-Zm9vYmFy'
    const env = { ...taskEnv, LONG: 'x'.repeat(20_000), SECRET: secret, MORE: 'y'.repeat(10_000) }
    const first = our.start('first', sh('until test -e go; do sleep 0.01; done'), env)
    const { launcher_pid: ofFirst } = await our.said('started', 'first')
    expect(memoryHolds(ofFirst, secret)).toBe(true)
    // At the same time, so that another launcher is forked; then it waits, as that of the first one does.
    const second = await endOf(our.start('second', ['/bin/true']))
    expect(second.process.launcher_pid).not.toBe(ofFirst)
    writeFileSync(join(first.dir, 'go'), '')
    await first.gone
    const launchers = childrenOf(our.forkServerPid!)
    expect(launchers.toSorted()).toEqual([ofFirst, second.process.launcher_pid].toSorted())
    for (const pid of [our.forkServerPid!, ...launchers]) expect([pid, memoryHolds(pid, secret)]).toEqual([pid, false])
  })

  test('counts what the next one uses alone', async () => {
    await using our = service()
    const busy = 'x=$(head -c 50000000 /dev/zero | tr "\\0" x); i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
    const first = await endOf(our.start('first', sh(busy)))
    const second = await endOf(our.start('second', ['/bin/true']))
    expect(second.process.launcher_pid).toBe(first.process.launcher_pid)
    expect(first.outcome.max_rss_bytes).toBeGreaterThan(50_000_000)
    expect(second.outcome.max_rss_bytes).toBeLessThan(20_000_000)
    const cpuOf = ({ user_cpu_ms, system_cpu_ms }: Outcome) => user_cpu_ms! + system_cpu_ms!
    expect(cpuOf(second.outcome)).toBeLessThan(cpuOf(first.outcome))
  })

  test.each([
    ['', undefined],
    [', nor without pidfd', withoutPidfd],
  ] as const)('does not take a request to end one task for the next%s', async (_, call) => {
    await using our = service()
    const request = (launcher: number, task: number) =>
      expect(signalIf(() => true, launcher, { name: KILL_SIGNAL, value: task }, call)).toBe(true)
    const first = (await endOf(our.start('first', ['/bin/true']))).process
    const second = our.start('second', sh('echo ready; until test -e go; do sleep 0.01; done; exit 7'))
    await until(
      () => existsSync(join(second.dir, 'stdout.log')) && readFileSync(join(second.dir, 'stdout.log'), 'utf8'),
      (stdout) => stdout === 'ready\n',
    )
    const { launcher_pid, pid } = readRecord(second.dir).process!
    expect(launcher_pid).toBe(first.launcher_pid)
    request(launcher_pid, first.pid)
    writeFileSync(join(second.dir, 'go'), '')
    expect((await endOf(second)).outcome).toMatchObject({ ending: { how: 'exited', exit_code: 7 }, reason: 'none' })

    // Nor one that comes while it waits; and it still hears those that are meant.
    request(launcher_pid, pid)
    const third = our.start('third', sh('exec sleep 600'))
    const { pid: sleeping, launcher_pid: same } = await our.said('started', 'third')
    expect(same).toBe(launcher_pid)
    request(launcher_pid, sleeping)
    const { outcome } = await endOf(third)
    expect(outcome).toMatchObject({ ending: { how: 'signaled', signal: SIGTERM }, reason: 'kill' })
  })

  test.each(MEDDLING)('is not one that its task has changed: %s', async (meddling) => {
    await using our = service()
    const first = await endOf(our.start('first', sh(CONDITION)))
    const meddler = await endOf(our.start('meddler', sh(`{ ${meddling}; } >&2; exit 5`)))
    expect(meddler.outcome.ending).toEqual({ how: 'exited', exit_code: 5 })
    const next = our.start('next', sh(CONDITION))
    const { process, outcome } = await endOf(next)
    expect(readFileSync(join(next.dir, 'stdout.log'), 'utf8')).toBe(
      readFileSync(join(our.path, 'first', 'stdout.log'), 'utf8'),
    )
    expect([outcome.ending, readFileSync(join(next.dir, 'stderr.log'), 'utf8')]).toEqual([
      { how: 'exited', exit_code: 0 },
      '',
    ])
    expect(meddler.process.launcher_pid).toBe(first.process.launcher_pid)
    expect(process.launcher_pid).not.toBe(meddler.process.launcher_pid)
    expect(our.complaints()).toBe('')
  })

  const why = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`
  test.skipIf(missingCgroups !== undefined)(`is not one that its task has taken into its group${why}`, async () => {
    await using groups = testCgroups()
    await using our = service()
    const cgroup = groups.tasks.forTask('first')!
    const paths = cgroup.version === 2 ? [cgroup.path] : [cgroup.pids_path!, cgroup.memory_path!]
    const plan = our.planOf('first', sh(paths.map((path) => `echo $PPID > ${path}/cgroup.procs;`).join(' ')))
    const first = await endOf(our.startPlan({ ...plan, cgroup }))
    const next = our.start('next', sh('cat /proc/self/cgroup'))
    expect((await endOf(next)).process.launcher_pid).not.toBe(first.process.launcher_pid)
    expect(readFileSync(join(next.dir, 'stdout.log'), 'utf8')).not.toContain('service.first')
  })

  test('is not moved by signals, and its next task neither', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', KILL_SIGNAL] as const) process.kill(launcher_pid, signal)
    const { process: next, outcome } = await endOf(our.start('second', sh('exit 7')))
    expect(outcome).toMatchObject({ ending: { how: 'exited', exit_code: 7 }, reason: 'none' })
    expect(next.launcher_pid).toBe(launcher_pid)
  })

  test('that is killed is not missed', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    process.kill(launcher_pid, 'SIGKILL')
    await gone(launcher_pid)
    const { process: next, outcome } = await endOf(our.start('second', sh('exit 8')))
    expect(outcome.ending).toEqual({ how: 'exited', exit_code: 8 })
    expect(next.launcher_pid).not.toBe(launcher_pid)
  })

  test('that is killed with a request on its way to it has that taken by another, once', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    await stopProcess(launcher_pid)
    const second = our.start('second', sh('echo ran >> ran; exit 8'))
    const inode = String(statSync(second.dir).ino)
    // To try the lock could take it from the fork server.
    await until(
      () => readFileSync('/proc/locks', 'utf8'),
      (locks) => locks.includes(`:${inode} `),
    )
    process.kill(launcher_pid, 'SIGKILL')
    const { process: next, outcome } = await endOf(second)
    expect(outcome.ending).toEqual({ how: 'exited', exit_code: 8 })
    expect(next.launcher_pid).not.toBe(launcher_pid)
    expect(readFileSync(join(second.dir, 'ran'), 'utf8')).toBe('ran\n')
  })

  test('that is killed with such a request when its fork server is gone has that taken by another, once', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    await stopProcess(launcher_pid)
    const second = our.start('second', sh('echo ran >> ran; exit 8'))
    const inode = String(statSync(second.dir).ino)
    await until(
      () => readFileSync('/proc/locks', 'utf8'),
      (locks) => locks.includes(`:${inode} `),
    )
    process.kill(our.forkServerPid!, 'SIGKILL')
    await until(
      () => our.log.texts.length,
      (length) => length === 1,
    )
    our.lookAround()
    expect([isLauncherAlive(second.dir), readRecord(second.dir)]).toEqual([true, {}])
    process.kill(launcher_pid, 'SIGKILL')
    await gone(launcher_pid)
    our.lookAround()
    expect((await endOf(second)).outcome.ending).toEqual({ how: 'exited', exit_code: 8 })
    expect(readFileSync(join(second.dir, 'ran'), 'utf8')).toBe('ran\n')
  })

  // The checker for leaks needs descriptors of its own at the end.
  const withoutChecker = variant === shippedLauncher ? test : ((() => {}) as unknown as typeof test)
  withoutChecker('that cannot take the next task says so, and another takes that, once', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', sh('exit 3')))).process
    // No descriptor fits any more, that of the lock neither.
    expect(Bun.spawnSync(['prlimit', `--pid=${launcher_pid}`, '--nofile=3:3']).exitCode).toBe(0)
    const second = our.start('second', sh('echo ran >> ran; exit 4'))
    expect((await endOf(second)).outcome.ending).toEqual({ how: 'exited', exit_code: 4 })
    expect(readFileSync(join(second.dir, 'ran'), 'utf8')).toBe('ran\n')
    expect(our.complaints()).toMatch(/^taskmill-launcher: cannot take the lock [^\n]+\n$/)
  })

  test('leaves what is too long for a message to one that is forked', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    const long = Array.from({ length: 10 }, () => 'x'.repeat(10_000))
    const { process, outcome } = await endOf(our.start('second', [...sh('exit $#'), ...long]))
    expect(outcome.ending).toEqual({ how: 'exited', exit_code: 9 })
    expect(process.launcher_pid).not.toBe(launcher_pid)
    // Which would be as large as that for ever.
    await gone(process.launcher_pid)
    expect((await endOf(our.start('third', ['/bin/true']))).process.launcher_pid).toBe(launcher_pid)
  })

  test('ends with its fork server', async () => {
    await using our = service()
    const { launcher_pid } = (await endOf(our.start('first', ['/bin/true']))).process
    process.kill(our.forkServerPid!, 'SIGKILL')
    await gone(launcher_pid)
    const next = (await endOf(our.start('second', ['/bin/true']))).process.launcher_pid
    expect(childrenOf(our.forkServerPid!)).toEqual([next])
    await our.host.close()
    await gone(next)
  })

  test('ends with its task when its fork server is gone by then', async () => {
    await using our = service()
    await our.start('first', ['/bin/true']).gone
    const task = our.start('second', sh('until test -e go; do sleep 0.01; done; exit 9'))
    const { launcher_pid } = await our.said('started', 'second')
    const pid = our.forkServerPid
    process.kill(pid!, 'SIGKILL')
    await gone(pid!)
    expect(await isAlive(launcher_pid)).toBe(true)
    writeFileSync(join(task.dir, 'go'), '')
    await gone(launcher_pid)
    expect(readRecord(task.dir).outcome!.ending).toEqual({ how: 'exited', exit_code: 9 })
  })
}
