/**
 * Goal: a task finds what it was promised around it, whatever the launcher itself was given: environment, descriptors,
 * signals, session, limits. Method: tasks that print what they see; launchers that start from odd surroundings.
 */
import { expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { compiledOnly, complaintOf, describeLaunchers, launch, run, sh, taskEnv } from '../../support/launchers.ts'
import { linkOf } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'

const { errno } = constants

describeLaunchers('a task', (launcher) => {
  test('has exactly the environment of the launcher', async () => {
    const env = { ...taskEnv, EMPTY: '', SECRET: 'a=b\nc €', 'not-a-name': '1', LD_LIBRARY_PATH: '' }
    const { stdout } = await run(launcher, { command: ['/usr/bin/env', '-0'], env })
    const expected = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    expect(stdout.split('\0').slice(0, -1).sort()).toEqual(expected.sort())
  })

  test('has the arguments as they are, ten thousand of them too', async () => {
    const odd = ['', ' ', '--', '--task-id', '-', 'a\nb', '€', '"$x"']
    const { stdout } = await run(launcher, { command: ['/usr/bin/printf', '%s\\0', ...odd] })
    expect(stdout.split('\0').slice(0, -1)).toEqual(odd)
    const many = Array.from({ length: 10_000 }, (_, i) => `argument-${i}`)
    const { stdout: count } = await run(launcher, {
      command: [...sh('echo $# $1; shift 9999; echo $1'), 'sh', ...many],
    })
    expect(count).toBe('10000 argument-0\nargument-9999\n')
  })

  test('has three descriptors: /dev/null and its logs', async () => {
    await using task = launch(launcher, { command: sh('for fd in /proc/$$/fd/*; do readlink $fd; done') })
    await task.outcome()
    expect(task.stdout.split('\n').filter((line) => line !== '')).toEqual([
      '/dev/null',
      join(task.dir, 'stdout.log'),
      join(task.dir, 'stderr.log'),
    ])
    for (const log of ['stdout.log', 'stderr.log']) expect(statSync(join(task.dir, log)).mode & 0o777).toBe(0o600)
  })

  test('reads nothing from its standard input', async () => {
    expect((await run(launcher, { command: sh('cat; echo end') })).stdout).toBe('end\n')
  })

  test('reads a file of its directory, if it is to, and may open it again', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'given'), 'a\0b')
    const plan = { task_dir: dir.path, stdin: 'given' }
    const { stdout } = await run(launcher, { ...plan, command: sh('cat; cat /dev/stdin; readlink /proc/$$/fd/0') })
    expect(stdout).toBe(`a\0ba\0b${join(dir.path, 'given')}\n`)
    using other = tempDir()
    const missing = await run(launcher, { ...plan, task_dir: other.path, command: sh('true') })
    expect(missing.ending).toEqual({ how: 'launch_failed', step: 'stdio', errno: errno.ENOENT })
  })

  test('gets no descriptor that the launcher happened to have, nor does the launcher keep it', async () => {
    const stray = openSync('/etc/passwd', 'r')
    const open = 'for fd in /proc/$$/fd/*; do readlink $fd; done; echo ready; sleep 600'
    // Descriptors 3 to 5, and 9, which is not next to them.
    const through = ['/bin/sh', '-c', 'exec 9<&5; exec "$@"', 'sh']
    await using task = launch(launcher, { command: sh(open), inherited: [stray, stray, stray], through })
    closeSync(stray)
    const stdout = await task.printed('ready\n')
    expect(stdout).not.toContain('/etc/passwd')
    if (launcher.isPortable) return // Bun keeps what it was given, but from its children
    const { launcher_pid } = await task.started()
    const fds = readdirSync(`/proc/${launcher_pid}/fd`).map((fd) => linkOf(`/proc/${launcher_pid}/fd/${fd}`))
    expect(fds).not.toContain('/etc/passwd')
    expect(fds).toContain('/dev/null')
  })

  test('may open /dev/stdout and /dev/stderr again, cutting the file or not', async () => {
    const appending = await run(launcher, {
      command: sh('echo one; echo two >> /dev/stdout; echo three; echo e >> /dev/stderr'),
    })
    expect([appending.stdout, appending.stderr]).toEqual(['one\ntwo\nthree\n', 'e\n'])
    const cutting = await run(launcher, {
      command: sh('echo one; echo two > /dev/stdout; echo three; echo e > /dev/stderr'),
    })
    expect([cutting.stdout, cutting.stderr]).toEqual(['two\nthree\n', 'e\n'])
  })

  test('may close all its streams', async () => {
    const ended = await run(launcher, { command: sh('exec <&- >&- 2>&-; sleep 0.1; exit 4') })
    expect(ended.ending).toEqual({ how: 'exited', exit_code: 4 })
  })

  test('starts with every signal as it is by default, and none blocked', async () => {
    const status = "grep -E '^(Sig(Blk|Ign|Pnd)|ShdPnd)' /proc/self/status"
    // What Bun and shells ignore, and some more.
    const through = ['/bin/sh', '-c', 'trap "" HUP INT QUIT PIPE USR1 USR2 XFSZ TSTP CHLD; exec "$@"', 'sh']
    for (const surroundings of [{}, { through }]) {
      const { stdout } = await run(launcher, { command: ['/bin/sh', '-c', `exec ${status}`], ...surroundings })
      const masks = stdout.split('\n').filter((line) => line !== '')
      expect(masks).toHaveLength(4)
      // Of those that a C library keeps for itself (32, 33) its programs can change nothing, only a system call can.
      const tolerated = launcher.isPortable ? 0x1_8000_0000n : 0n
      for (const mask of masks) expect([mask, BigInt(`0x${mask.split('\t')[1]}`) & ~tolerated]).toEqual([mask, 0n])
    }
  })

  compiledOnly(launcher)('has an exit status though the launcher was started by somebody who wants none', async () => {
    const through = ['/usr/bin/perl', '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV', '--']
    expect((await run(launcher, { command: sh('exit 7'), through })).ending).toEqual({ how: 'exited', exit_code: 7 })
  })

  test('leads a session and a group of its own, without a terminal', async () => {
    // Field 5 is the group, 6 the session, 7 the terminal.
    const { stdout, process: who } = await run(launcher, { command: sh('cut -d " " -f 5-7 /proc/$$/stat') })
    expect(stdout).toBe(`${who!.pid} ${who!.pid} 0\n`)
    expect(who!.pgid).toBe(who!.pid)
  })

  test('starts in its working directory, with a common umask', async () => {
    const ended = await run(launcher, { command: sh('pwd; umask') })
    expect(ended.stdout).toBe(`${ended.workdir}\n0022\n`)
    const { stdout } = await run(launcher, {
      command: sh('umask'),
      through: ['/bin/sh', '-c', 'umask 0; exec "$@"', 'sh'],
    })
    expect(stdout).toBe('0022\n')
  })

  test('has a common limit on open files, may raise it, and leaves no core', async () => {
    const { stdout } = await run(launcher, { command: sh('ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Hc') })
    const [soft, hard, ...core] = stdout.trim().split('\n')
    expect([soft, core]).toEqual(['1024', ['0', '0']])
    expect(hard === 'unlimited' || Number(hard) >= 1024).toBe(true)
    const low = await run(launcher, {
      command: sh('ulimit -Sn; ulimit -Hn'),
      through: ['/bin/sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'],
    })
    expect(low.stdout).toBe('64\n64\n')
  })

  test('is the same when the launcher starts without standard streams', async () => {
    const command = sh('echo out; echo err >&2; cat; ls /proc/$$/fd')
    for (const closed of ['<&-', '>&-', '2>&-', '<&- >&- 2>&-']) {
      const through = ['/bin/sh', '-c', `exec "$@" ${closed}`, 'sh']
      const { ending, stdout, stderr } = await run(launcher, { command, through })
      expect([closed, ending, stdout, stderr]).toEqual([
        closed,
        { how: 'exited', exit_code: 0 },
        'out\n0\n1\n2\n',
        'err\n',
      ])
    }
  })
})

describeLaunchers('arguments that cannot be meant', (launcher) => {
  const given = ['--task-id', 't', '--task-dir', '/tmp', '--workdir', '/tmp', '--wall-time-ms', '1', '--grace-ms', '1']
  const needed = [...given, '--max-output-bytes', '1']
  const end = ['--', 'true']

  const sandbox = (features: string) => [
    ...['--sandbox', features],
    ...(process.getuid?.() === 0 ? ['--sandbox-uid', '1'] : []),
  ]

  type Refused = readonly [argv: readonly string[], complaint: string]
  const refused: readonly Refused[] = [
    [[], 'missing: --task-id'],
    [[...given, ...end], 'missing: --max-output-bytes'],
    [needed, 'missing: -- PROGRAM ARGS...'],
    [[...needed, '--'], 'missing: -- PROGRAM ARGS...'],
    [[...needed, '--surprise', '1', ...end], 'unknown argument: --surprise'],
    [[...needed, 'true'], 'unknown argument: true'],
    [[...needed, '--task-id', 'u', ...end], 'given twice: --task-id'],
    [[...needed, '--wall-time-ms', '5', ...end], 'given twice: --wall-time-ms'],
    ...['', '0', '-1', '+1', '1.5', ' 1', '0x1', '1e3', '9999999999999999'].map(
      (value) =>
        [[...needed, '--cpu-time-sec', value, ...end], 'not a number that is possible: --cpu-time-sec'] as const,
    ),
    [[...needed, '--lock-fd', '2', ...end], 'not a number that is possible: --lock-fd'],
    [['--task-id', 'a b', ...needed.slice(2), ...end], '--task-id must be 1 to 128 letters, digits, -, _ or .'],
    [
      ['--task-id', 'x'.repeat(129), ...needed.slice(2), ...end],
      '--task-id must be 1 to 128 letters, digits, -, _ or .',
    ],
    [['--two\nlines\u0001', '1'], 'unknown argument: --two?lines?'],
  ]

  /** Of control groups, which the portable one does not know, and what Bun does not leave as it is. */
  const refusedByCompiled: readonly Refused[] = [
    [end, 'missing: --task-id'],
    [[...needed, '--pids-max'], 'without a value: --pids-max'],
    [[...needed, '--cgroup-v2', '', ...end], 'an empty value: --cgroup-v2'],
    [[...needed, '--pids-max', '5', ...end], '--pids-max needs --cgroup-v2 or --cgroup-v1-pids'],
    [
      [...needed, '--memory-max', '5', '--cgroup-v1-pids', '/x', ...end],
      '--memory-max needs --cgroup-v2 or --cgroup-v1-memory',
    ],
    [
      [...needed, '--cgroup-v2', '/x', '--cgroup-v1-pids', '/x', ...end],
      '--cgroup-v2 does not go with --cgroup-v1-pids, --cgroup-v1-memory',
    ],
    [['--long'.repeat(2_000), '1'], `unknown argument: ${'--long'.repeat(2_000)}`.slice(0, 2_000)],
    [[...needed, '--workdir'], 'without a value: --workdir'],
    [[...needed, '--mount'], 'without a value: --mount'],
    [[...needed, '--mount', 'burn', '/', ...end], 'unknown operation of --mount: burn'],
    [[...needed, '--mount', 'tmpfs', '/dev'], 'too few words: --mount tmpfs'],
    [[...needed, '--mount', 'bind', 'exec', '/a', '/b', 'same', ...end], 'not a step of a sandbox: exec'],
    [
      [...needed, ...Array.from({ length: 1_000 }, () => ['--mount', 'proc', '/proc']).flat(), ...end],
      'given too often: --mount',
    ],
    [[...needed, '--mount', 'freeze', '/', ...end], '--sandbox-uid, --mount and --egress-socket need --sandbox'],
    [[...needed, ...sandbox('mount'), ...end], '--sandbox mount and --mount need each other'],
    [[...needed, ...sandbox('pid'), '--mount', 'freeze', '/', ...end], '--sandbox mount and --mount need each other'],
  ]

  /** The portable one makes no sandbox, and says so by the first argument of one. */
  const refusedByPortable: readonly Refused[] = [
    [[...needed, ...sandbox('mount'), '--mount', 'freeze', '/', ...end], 'unknown argument: --sandbox'],
    [[...needed, '--mount', 'freeze', '/', ...end], 'unknown argument: --mount'],
  ]

  test.each([...refused, ...(launcher.isPortable ? refusedByPortable : refusedByCompiled)])(
    'are refused in one line (%#)',
    async (argv, complaint) => {
      await using task = launch(launcher, { command: ['true'], argv })
      expect(await task.exited).toBe(125)
      expect(await task.complaints()).toBe(`taskmill-launcher: ${complaint}\n`)
    },
  )

  test('are refused, too, where they name a descriptor that is not open', async () => {
    await using task = launch(launcher, { command: ['true'], descriptors: { notify_fd: 77 } })
    expect(await task.exited).toBe(125)
    expect(await task.complaints()).toMatch(complaintOf('descriptors'))
  })
})
