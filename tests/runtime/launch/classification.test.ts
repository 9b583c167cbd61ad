/** Goal: each ending means to the user what the contract says. Method: tables, and what must hold for every outcome. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { type Asked, type Classified, classify } from '../../../runtime/launch/classification.ts'
import { explainFault, FAULT_STEPS } from '../../../runtime/launch/faults.ts'
import type { Outcome } from '../../../runtime/launch/outcome.ts'

const { errno, signals } = constants

const ASKED: Asked = { program: 'make', workdir: '/data/w', wall_time_ms: 1_000, max_output_bytes: 100 }
const ENDED: Outcome = {
  ending: { how: 'exited', exit_code: 0 },
  reason: 'none',
  process: { launcher_pid: 1, pid: 2, pgid: 2, start_time: 3, boot_id: 'b', started_ms: 4 },
  ...{ finished_ms: 504, duration_ms: 500, user_cpu_ms: 10, system_cpu_ms: 5, max_rss_bytes: 4_096 },
  ...{ leftovers_killed: 0, leftovers_alive: 0, stdout_bytes: 6, stderr_bytes: 0 },
}
const exited = (exit_code: number): Partial<Outcome> => ({ ending: { how: 'exited', exit_code } })
const signaled = (signal: number): Partial<Outcome> => ({ ending: { how: 'signaled', signal } })
const meaning = (outcome: Partial<Outcome>, asked: Partial<Asked> = {}): Classified =>
  classify({ ...ENDED, ...outcome }, { ...ASKED, ...asked })

describe('an outcome means', () => {
  test('success, with its usage', () => {
    expect(meaning({ memory_peak_bytes: 9_000 })).toEqual({
      status: 'success',
      exit_code: 0,
      usage: { duration_ms: 500, user_cpu_ms: 10, system_cpu_ms: 5, max_rss_bytes: 4_096, memory_peak_bytes: 9_000 },
    })
  })

  test('success of a task that survived a killed process of its own, or left some behind', () => {
    expect(meaning({ oom_kills: 1, leftovers_killed: 3 }, { memory_bytes: 5 }).status).toBe('success')
  })

  const cases: [string, Partial<Outcome>, Partial<Asked>, Partial<Classified>][] = [
    [
      'an exit code',
      exited(3),
      {},
      { exit_code: 3, error: { code: 'exit_nonzero', message: 'task exited with code 3' } },
    ],
    [
      'a signal',
      signaled(signals.SIGSEGV),
      {},
      {
        exit_signal: 11,
        error: { code: 'exit_nonzero', message: 'task terminated by signal SIGSEGV', details: { signal: 'SIGSEGV' } },
      },
    ],
    [
      'a real-time signal',
      signaled(40),
      {},
      {
        exit_signal: 40,
        error: { code: 'exit_nonzero', message: 'task terminated by signal SIG40', details: { signal: 'SIG40' } },
      },
    ],
    [
      'abort',
      signaled(signals.SIGABRT),
      {},
      {
        exit_signal: 6,
        error: { code: 'exit_nonzero', message: 'task terminated by signal SIGABRT', details: { signal: 'SIGABRT' } },
      },
    ],
    [
      'KILL by somebody',
      signaled(signals.SIGKILL),
      {},
      {
        exit_signal: 9,
        error: { code: 'exit_nonzero', message: 'task terminated by signal SIGKILL', details: { signal: 'SIGKILL' } },
      },
    ],
    [
      'the wall time',
      { ...signaled(signals.SIGTERM), reason: 'wall_time' },
      {},
      {
        exit_signal: 15,
        error: { code: 'timeout', message: 'task exceeded wall_time_ms', details: { wall_time_ms: 1_000 } },
      },
    ],
    [
      'the wall time, though the task then exited with 0',
      { ...exited(0), reason: 'wall_time' },
      {},
      {
        exit_code: 0,
        error: { code: 'timeout', message: 'task exceeded wall_time_ms', details: { wall_time_ms: 1_000 } },
      },
    ],
    [
      'too much on stdout',
      { ...signaled(9), reason: 'output_limit', stdout_bytes: 101 },
      {},
      {
        exit_signal: 9,
        error: {
          code: 'resource_limit_exceeded',
          message: 'task wrote more than 100 bytes to stdout',
          details: { stream: 'stdout', max_output_bytes: 100 },
        },
      },
    ],
    [
      'too much on stderr',
      { ...signaled(9), reason: 'output_limit', stdout_bytes: 100, stderr_bytes: 101 },
      {},
      {
        exit_signal: 9,
        error: {
          code: 'resource_limit_exceeded',
          message: 'task wrote more than 100 bytes to stderr',
          details: { stream: 'stderr', max_output_bytes: 100 },
        },
      },
    ],
    [
      'too much by itself, before anybody looked',
      { ...exited(0), stdout_bytes: 101 },
      {},
      {
        exit_code: 0,
        error: {
          code: 'resource_limit_exceeded',
          message: 'task wrote more than 100 bytes to stdout',
          details: { stream: 'stdout', max_output_bytes: 100 },
        },
      },
    ],
    [
      'directories too deep to be counted',
      { ...exited(0), disk_bytes: 3, disk_too_deep: 1 },
      { disk_bytes: 10 },
      {
        exit_code: 0,
        error: {
          code: 'resource_limit_exceeded',
          message: 'workspace has directories more than 256 deep, which cannot be counted for disk_bytes',
          details: {
            disk_bytes: 10,
            remedy: 'let the task, and the tasks of its inputs, make directories less deep',
          },
        },
      },
    ],
    [
      'its memory before it began',
      { ending: { how: 'sandbox_setup_failed', step: 'init', errno: 3 }, oom_kills: 1 },
      { memory_bytes: 1 },
      {
        error: {
          code: 'memory_limit_exceeded',
          message: 'task exceeded memory_bytes',
          details: { oom_kills: 1, memory_bytes: 1 },
        },
      },
    ],
    [
      "a SIGXCPU that is not the kernel's",
      { ...signaled(signals.SIGXCPU), user_cpu_ms: 0, system_cpu_ms: 3 },
      { cpu_time_sec: 50 },
      {
        exit_signal: 24,
        error: {
          code: 'exit_nonzero',
          message: 'task terminated by signal SIGXCPU',
          details: { signal: 'SIGXCPU' },
        },
      },
    ],
    [
      'its CPU time, by SIGXCPU',
      { ...signaled(signals.SIGXCPU), user_cpu_ms: 700, system_cpu_ms: 5 },
      { cpu_time_sec: 1 },
      {
        exit_signal: 24,
        error: { code: 'cpu_limit_exceeded', message: 'task exceeded cpu_time_sec', details: { cpu_time_sec: 1 } },
      },
    ],
    [
      'its CPU time, by KILL',
      { ...signaled(signals.SIGKILL), user_cpu_ms: 1_400, system_cpu_ms: 100 },
      { cpu_time_sec: 1 },
      {
        exit_signal: 9,
        error: { code: 'cpu_limit_exceeded', message: 'task exceeded cpu_time_sec', details: { cpu_time_sec: 1 } },
      },
    ],
    [
      'the CPU time of what a shell ran',
      { ...exited(128 + signals.SIGXCPU), user_cpu_ms: 750 },
      { cpu_time_sec: 1 },
      {
        exit_code: 152,
        error: { code: 'cpu_limit_exceeded', message: 'task exceeded cpu_time_sec', details: { cpu_time_sec: 1 } },
      },
    ],
    [
      'KILL by somebody, of a task with CPU time to spare',
      { ...signaled(signals.SIGKILL), user_cpu_ms: 1_494 },
      { cpu_time_sec: 1 },
      {
        exit_signal: 9,
        error: { code: 'exit_nonzero', message: 'task terminated by signal SIGKILL', details: { signal: 'SIGKILL' } },
      },
    ],
    [
      'an exit code that only looks like it',
      { ...exited(152), user_cpu_ms: 744 },
      { cpu_time_sec: 1 },
      { exit_code: 152, error: { code: 'exit_nonzero', message: 'task exited with code 152' } },
    ],
    [
      'an exit code, of a task that used up its CPU time in many processes',
      { ...exited(1), user_cpu_ms: 5_000 },
      { cpu_time_sec: 1 },
      { exit_code: 1, error: { code: 'exit_nonzero', message: 'task exited with code 1' } },
    ],
    [
      'its memory',
      { ...signaled(signals.SIGKILL), oom_kills: 1 },
      { memory_bytes: 1_024 },
      {
        exit_signal: 9,
        error: {
          code: 'memory_limit_exceeded',
          message: 'task exceeded memory_bytes',
          details: { oom_kills: 1, memory_bytes: 1_024 },
        },
      },
    ],
    [
      'the memory of a process it could not do without',
      { ...exited(2), oom_kills: 2 },
      { memory_bytes: 1_024 },
      {
        exit_code: 2,
        error: {
          code: 'memory_limit_exceeded',
          message: 'task exceeded memory_bytes',
          details: { oom_kills: 2, memory_bytes: 1_024 },
        },
      },
    ],
    [
      'the wall time rather than memory, which came second',
      { ...signaled(9), reason: 'wall_time', oom_kills: 1 },
      { memory_bytes: 1_024 },
      {
        exit_signal: 9,
        error: { code: 'timeout', message: 'task exceeded wall_time_ms', details: { wall_time_ms: 1_000 } },
      },
    ],
  ]
  for (const [name, outcome, asked, expected] of cases) {
    test(`a failure: ${name}`, () => {
      const { usage: _, ...rest } = meaning(outcome, asked)
      expect(rest).toEqual({ status: 'failed', ...expected } as typeof rest)
    })
  }

  test('cancelled, whatever the exit code, once TERM was sent for a kill', () => {
    for (const ending of [exited(0), exited(7), signaled(15), signaled(9)]) {
      const { status, error } = meaning({ ...ending, reason: 'kill' })
      expect([status, error]).toEqual(['cancelled', { code: 'cancelled', message: 'task was cancelled' }])
    }
  })

  test('an internal failure, with a remedy, when somebody else ended the launcher', () => {
    const { status, error } = meaning({ ...signaled(15), reason: 'terminated' })
    expect([status, error!.code]).toEqual(['failed', 'internal'])
    expect(error!.details!.remedy).toContain('KillMode=process')
  })

  test('the reason, and what is left, for a task that could not be killed', () => {
    const { status, error } = meaning({ ending: { how: 'abandoned' }, reason: 'wall_time', leftovers_alive: 1 })
    expect([status, error!.code, error!.details]).toEqual([
      'failed',
      'timeout',
      { wall_time_ms: 1_000, leftovers_alive: 1 },
    ])
    expect(meaning({ ending: { how: 'abandoned' }, leftovers_alive: 1 }).error!.code).toBe('internal')
  })

  test('launch_failed or sandbox_setup_failed, with the step, the reason and a remedy', () => {
    const { status, error } = meaning({ ending: { how: 'launch_failed', step: 'exec', errno: errno.ENOENT } })
    expect(status).toBe('failed')
    expect(error).toEqual({
      code: 'launch_failed',
      message:
        'cannot start the task: the program cannot be run ("make"): no such file or directory (check the path of the program and of its interpreter (#!); a bare name is looked up in the PATH of the task)',
      details: {
        step: 'exec',
        errno: 'ENOENT',
        remedy:
          'check the path of the program and of its interpreter (#!); a bare name is looked up in the PATH of the task',
      },
    })
    const workdir = meaning({ ending: { how: 'launch_failed', step: 'workdir', errno: errno.EACCES } })
    expect(workdir.error!.message).toContain('("/data/w"): permission denied (')
    const sandbox = meaning({ ending: { how: 'sandbox_setup_failed', step: 'cgroup_create', errno: errno.EROFS } })
    expect([sandbox.status, sandbox.error!.code]).toEqual(['failed', 'sandbox_setup_failed'])
  })

  test('sandbox_setup_failed names the mount that failed, as a task would have seen it', () => {
    const failed = (step: string, mount: string) =>
      meaning({ ending: { how: 'sandbox_setup_failed', step, errno: errno.EACCES, mount } }).error!.message
    expect(failed('mask', '/srv/keys')).toContain(
      'a part of the host cannot be hidden ("/srv/keys"): permission denied',
    )
    expect(failed('tmp', 'root/tmp')).toContain('its /tmp cannot be mounted ("/tmp"): permission denied')
    expect(failed('scaffold', 'cover-1')).not.toContain('cover-1')
  })
})

describe('the words for a fault', () => {
  test('are there for every step of the launcher, and for no other', () => {
    const header = readFileSync(join(import.meta.dir, '../../../runtime/launch/c/base/fault.h'), 'utf8')
    const steps = [...header.matchAll(/X\(\w+, "(\w+)"/g)].map(([, name]) => name!)
    expect(FAULT_STEPS.toSorted()).toEqual(steps.filter((name) => name !== 'none').toSorted())
  })

  test('are one line, with a remedy, for every error of every step', () => {
    for (const step of FAULT_STEPS) {
      for (const number of Object.values(errno)) {
        const { message, details } = explainFault(step, number, 'x')
        expect(message).toMatch(/^cannot start the task: [^\n]+: [^\n]+ \([^\n]+\)$/)
        expect(details.remedy).not.toBe('')
      }
    }
  })

  test('say as much as can be known of steps and errors to come', () => {
    expect(explainFault('landlock', 9_999)).toEqual({
      message: 'cannot start the task: step landlock failed: error 9999',
      details: { step: 'landlock', errno: 'error 9999' },
    })
  })
})
