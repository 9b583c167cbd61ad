/**
 * Goal: the outcome says how a task ended, or why it could not be started, and never mixes the two. Method: programs that
 * end in each way there is; the launcher as a black box.
 */
import { expect, test } from 'bun:test'
import { chmodSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import {
  compiledOnly,
  complaintOf,
  describeLaunchers,
  launch,
  rootTest,
  run,
  sh,
  taskEnv,
} from '../../support/launchers.ts'
import { tempDir } from '../../support/temp.ts'

const { errno, signals } = constants

describeLaunchers('an ending', (launcher) => {
  test('by exit has the exit code, and the launcher ends with it', async () => {
    for (const code of [0, 1, 2, 77, 124, 126, 127, 128, 137, 255]) {
      const ended = await run(launcher, { command: sh(`exit ${code}`) })
      expect([code, ended.ending, ended.reason, ended.code]).toEqual([
        code,
        { how: 'exited', exit_code: code },
        'none',
        code,
      ])
    }
  })

  test('by a signal has its number, and the launcher ends as shells say it', async () => {
    for (const name of 'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV PIPE ALRM'.split(' ')) {
      const ended = await run(launcher, { command: sh(`kill -${name} $$`) })
      const signal = signals[`SIG${name}` as keyof typeof signals]
      expect([name, ended.ending, ended.reason, ended.code]).toEqual([
        name,
        { how: 'signaled', signal },
        'none',
        128 + signal,
      ])
    }
    const ended = await run(launcher, { command: sh('kill -40 $$') })
    expect([ended.ending, ended.code]).toEqual([{ how: 'signaled', signal: 40 }, 168])
  })

  test('of a task that was not started names the step and the system error', async () => {
    using dir = tempDir()
    const path = (name: string) => join(dir.path, name)
    writeFileSync(path('plain'), '#!/bin/sh\n')
    for (const [name, text] of [
      ['no-interpreter', '#!/no/such/interpreter\n'],
      ['no-line', 'echo hello\n'],
      ['empty', ''],
    ] as const) {
      writeFileSync(path(name), text)
      chmodSync(path(name), 0o755)
    }
    for (const [program, error] of [
      [path('missing'), errno.ENOENT],
      ['no-such-program-anywhere', errno.ENOENT],
      ['', errno.ENOENT],
      [path('plain'), errno.EACCES],
      [dir.path, errno.EACCES],
      [path('plain/below'), errno.ENOTDIR],
      [path('no-interpreter'), errno.ENOENT],
      [path('no-line'), errno.ENOEXEC],
      [path('empty'), errno.ENOEXEC],
    ] as const) {
      const ended = await run(launcher, { command: [program] })
      expect([program, ended.ending, ended.reason, ended.code, ended.stdout, ended.stderr]).toEqual([
        program,
        { how: 'launch_failed', step: 'exec', errno: error },
        'none',
        125,
        '',
        '',
      ])
    }
  })

  test('of a task without a working directory names that', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'file'), '')
    for (const [workdir, error] of [
      [join(dir.path, 'missing'), errno.ENOENT],
      [join(dir.path, 'file'), errno.ENOTDIR],
    ] as const) {
      const ended = await run(launcher, { command: ['/bin/true'], workdir })
      expect([workdir, ended.ending]).toEqual([workdir, { how: 'launch_failed', step: 'workdir', errno: error }])
    }
  })

  rootTest('of a task that may not enter its working directory names that', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o700)
    const ended = await run(launcher, { command: ['/bin/true'], workdir: dir.path, uid: 65_534 })
    expect(ended.ending).toEqual({ how: 'launch_failed', step: 'workdir', errno: errno.EACCES })
  })

  rootTest('comes to a task that may not write into its working directory, too', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o555)
    const ended = await run(launcher, { command: sh('echo x > file || exit 3'), workdir: dir.path, uid: 65_534 })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 3 })
  })

  test('says what the launcher could not do on its standard error as well', async () => {
    await using task = launch(launcher, { command: ['/no/such/program'] })
    await task.exited
    expect(await task.complaints()).toMatch(complaintOf('exec'))
  })

  test('leaves only the outcome and the logs in the directory', async () => {
    for (const command of [['/bin/true'], ['/no/such/program']] as const) {
      await using task = launch(launcher, { command: [...command] })
      await task.exited
      const files = [...new Bun.Glob('*').scanSync({ cwd: task.dir, onlyFiles: false, dot: true })].sort()
      expect(files).toEqual(['outcome', 'stderr.log', 'stdout.log'])
    }
  })

  test('has the times and the resources of the task', async () => {
    const before = Date.now()
    // A child that is waited for, then a grandchild that is not: both count.
    const burn = (ms: number) => `awk 'BEGIN { for (i = 0; i < ${ms} * 20000; i++) x += i }'`
    const ended = await run(launcher, {
      command: sh(`${burn(20)}; head -c 30000000 /dev/zero | tail -c 30000000 > /dev/null; exit 0`),
    })
    const after = Date.now()
    const { user_cpu_ms = 0, system_cpu_ms = 0, max_rss_bytes = 0, process: who } = ended
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 0 })
    expect(who!.started_ms).toBeGreaterThanOrEqual(before)
    expect(ended.finished_ms).toBeGreaterThanOrEqual(who!.started_ms)
    expect(ended.finished_ms).toBeLessThanOrEqual(after)
    // It began before it was noted when; between the two the launcher may have had to wait for its turn.
    expect(ended.duration_ms).toBeGreaterThanOrEqual(ended.finished_ms - who!.started_ms - 1)
    expect(ended.duration_ms).toBeLessThanOrEqual(after - before + 1)
    expect(user_cpu_ms + system_cpu_ms).toBeGreaterThan(0)
    // Two processors may work at the same time.
    expect(user_cpu_ms + system_cpu_ms).toBeLessThanOrEqual((ended.duration_ms + 20) * navigator.hardwareConcurrency)
    expect(max_rss_bytes).toBeGreaterThan(30_000_000)
    expect(max_rss_bytes).toBeLessThan(200_000_000)
    expect([ended.leftovers_killed, ended.leftovers_alive, ended.memory_peak_bytes, ended.oom_kills]).toEqual([
      0,
      0,
      undefined,
      undefined,
    ])
  })

  compiledOnly(launcher)('does not count the launcher as the memory of the task', async () => {
    const { max_rss_bytes = 0 } = await run(launcher, { command: ['/bin/true'] })
    expect(max_rss_bytes).toBeGreaterThan(100_000)
    expect(max_rss_bytes).toBeLessThan(10_000_000)
  })

  test('has the sizes of the logs', async () => {
    const ended = await run(launcher, { command: sh('echo hello; echo trouble >&2') })
    expect([ended.stdout_bytes, ended.stderr_bytes]).toEqual([6, 8])
    expect([ended.stdout, ended.stderr]).toEqual(['hello\n', 'trouble\n'])
  })

  compiledOnly(launcher)('of a program that asks to be traced by its parent is its own', async () => {
    // PTRACE_TRACEME: from then on each signal stops it until its parent lets it go on.
    const traceme = process.arch === 'x64' ? 101 : 117
    const ended = await run(launcher, {
      command: [
        '/usr/bin/perl',
        '-e',
        `syscall(${traceme}, 0, 0, 0, 0); kill "WINCH", $$; exec "/bin/sh", "-c", "exit 5"`,
      ],
    })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 5 })
  })

  test('comes to a script with a bare name in the PATH of the task', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'hello'), '#!/bin/sh\necho "$0 $1"\n')
    chmodSync(join(dir.path, 'hello'), 0o755)
    const path = `/no/such/dir::${join(dir.path, 'hello')}:${dir.path}`
    const ended = await run(launcher, { command: ['hello', 'you'], env: { ...taskEnv, PATH: path } })
    expect([ended.ending, ended.stdout]).toEqual([{ how: 'exited', exit_code: 0 }, `${dir.path}/hello you\n`])
    chmodSync(join(dir.path, 'hello'), 0o644)
    const forbidden = await run(launcher, { command: ['hello'], env: { ...taskEnv, PATH: path } })
    expect(forbidden.ending).toEqual({ how: 'launch_failed', step: 'exec', errno: errno.EACCES })
  })

  test('comes to a program of the working directory, by a relative path or an empty part of PATH', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'here'), '#!/bin/sh\npwd\n')
    chmodSync(join(dir.path, 'here'), 0o755)
    for (const [program, PATH] of [
      ['./here', '/usr/bin'],
      ['here', '/usr/bin:'],
    ] as const) {
      const ended = await run(launcher, { command: [program], workdir: dir.path, env: { ...taskEnv, PATH } })
      expect([program, ended.ending, ended.stdout]).toEqual([program, { how: 'exited', exit_code: 0 }, `${dir.path}\n`])
    }
  })

  test('comes to a program with a bare name where the task has no PATH', async () => {
    const { PATH: _, ...env } = taskEnv
    const ended = await run(launcher, { command: ['true'], env })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 0 })
  })
})
