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

  const by = (exit_code: number) => ({ code: 'exit_nonzero' as const, message: `task exited with code ${exit_code}` })
  const through = (signal: string) => ({
    ...{ code: 'exit_nonzero' as const, message: `task terminated by signal ${signal}`, details: { signal } },
  })
  const TIMEOUT = {
    ...{ code: 'timeout' as const, message: 'task exceeded wall_time_ms', details: { wall_time_ms: 1_000 } },
  }
  const CPU = {
    ...{ code: 'cpu_limit_exceeded' as const, message: 'task exceeded cpu_time_sec', details: { cpu_time_sec: 1 } },
  }
  const memory = (oom_kills: number, memory_bytes: number) => ({
    ...{ code: 'memory_limit_exceeded' as const, message: 'task exceeded memory_bytes' },
    details: { oom_kills, memory_bytes },
  })
  const output = (stream: string) => ({
    ...{ code: 'resource_limit_exceeded' as const, message: `task wrote more than 100 bytes to ${stream}` },
    details: { stream, max_output_bytes: 100 },
  })
  const TOO_DEEP = {
    code: 'resource_limit_exceeded' as const,
    message: 'workspace has directories more than 256 deep, which cannot be counted for disk_bytes',
    details: { disk_bytes: 10, remedy: 'let the task, and the tasks of its inputs, make directories less deep' },
  }
  const { SIGSEGV, SIGABRT, SIGKILL, SIGTERM, SIGXCPU } = signals
  const tooMuch = { ...signaled(9), reason: 'output_limit' as const }
  const spent = (user_cpu_ms: number, system_cpu_ms = 5) => ({ user_cpu_ms, system_cpu_ms })
  const noInit = { ending: { how: 'sandbox_setup_failed' as const, step: 'init', errno: 3 } }
  const [cpu, kib] = [{ cpu_time_sec: 1 }, { memory_bytes: 1_024 }]
  const stderrToo = { ...tooMuch, stdout_bytes: 100, stderr_bytes: 101 }
  const tooDeep = { ...exited(0), disk_bytes: 3, disk_too_deep: 1 }
  const early = { ...signaled(SIGXCPU), ...spent(0, 3) }
  const spare = { ...signaled(SIGKILL), ...spent(1_494) }
  const late = { ...signaled(9), reason: 'wall_time' as const, oom_kills: 1 }
  const cases: [string, Partial<Outcome>, Partial<Asked>, Partial<Classified>][] = [
    ['an exit code', exited(3), {}, { exit_code: 3, error: by(3) }],
    ['a signal', signaled(SIGSEGV), {}, { exit_signal: 11, error: through('SIGSEGV') }],
    ['a real-time signal', signaled(40), {}, { exit_signal: 40, error: through('SIG40') }],
    ['abort', signaled(SIGABRT), {}, { exit_signal: 6, error: through('SIGABRT') }],
    ['KILL by somebody', signaled(SIGKILL), {}, { exit_signal: 9, error: through('SIGKILL') }],
    ['the wall time', { ...signaled(SIGTERM), reason: 'wall_time' }, {}, { exit_signal: 15, error: TIMEOUT }],
    ['the wall time, then 0', { ...exited(0), reason: 'wall_time' }, {}, { exit_code: 0, error: TIMEOUT }],
    ['too much on stdout', { ...tooMuch, stdout_bytes: 101 }, {}, { exit_signal: 9, error: output('stdout') }],
    ['too much on stderr', stderrToo, {}, { exit_signal: 9, error: output('stderr') }],
    ['too much, unseen', { ...exited(0), stdout_bytes: 101 }, {}, { exit_code: 0, error: output('stdout') }],
    ['directories too deep to be counted', tooDeep, { disk_bytes: 10 }, { exit_code: 0, error: TOO_DEEP }],
    ['its memory before it began', { ...noInit, oom_kills: 1 }, { memory_bytes: 1 }, { error: memory(1, 1) }],
    ["a SIGXCPU that is not the kernel's", early, { cpu_time_sec: 50 }, { exit_signal: 24, error: through('SIGXCPU') }],
    ['its CPU time, by SIGXCPU', { ...signaled(SIGXCPU), ...spent(700) }, cpu, { exit_signal: 24, error: CPU }],
    ['its CPU time, by KILL', { ...signaled(SIGKILL), ...spent(1_400, 100) }, cpu, { exit_signal: 9, error: CPU }],
    ['CPU time of what a shell ran', { ...exited(128 + SIGXCPU), ...spent(750) }, cpu, { exit_code: 152, error: CPU }],
    ['KILL by somebody, with CPU time to spare', spare, cpu, { exit_signal: 9, error: through('SIGKILL') }],
    ['a code that only looks like it', { ...exited(152), ...spent(744) }, cpu, { exit_code: 152, error: by(152) }],
    ['a code after CPU time of many processes', { ...exited(1), ...spent(5_000) }, cpu, { exit_code: 1, error: by(1) }],
    ['its memory', { ...signaled(SIGKILL), oom_kills: 1 }, kib, { exit_signal: 9, error: memory(1, 1_024) }],
    ['memory of a process it needed', { ...exited(2), oom_kills: 2 }, kib, { exit_code: 2, error: memory(2, 1_024) }],
    ['the wall time rather than memory, which came second', late, kib, { exit_signal: 9, error: TIMEOUT }],
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
