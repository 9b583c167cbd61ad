/** Goal: the systemd units start the services as they are. Method: their directives, and systemd's own opinion. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram, PROGRAMS, type ProgramName } from '../../scripts/build.ts'
import { parseDurationMs } from '../../shared/settings/duration.ts'
import { faultsOfCommand, helpOf, readDeployed, readUnit } from '../support/deploy-files.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const UNITS = ['taskmill-control.service', 'taskmill-runtime.service'] as const

const serviceOf = (unit: string): Record<string, string[]> => readUnit(unit).Service!

describe.each(UNITS)('%s', (unit) => {
  const service = serviceOf(unit)

  test('starts an executable of the build with flags that it has', async () => {
    const words = service.ExecStart![0]!.split(' ')
    expect(words[0]).toBe(`/usr/local/bin/${unit.replace('.service', '')}`)
    expect(await faultsOfCommand(words)).toEqual([])
  })

  test('needs the file with the token', () => {
    expect(service.EnvironmentFile).toEqual(['/etc/taskmill/taskmill.env'])
  })

  test('keeps its data where systemd makes a place for it, which nobody else may read', () => {
    const dataDir = /--data-dir %S\/(\S+)/.exec(service.ExecStart![0]!)![1]!
    expect(service.StateDirectory![0]!.split(' ')).toContain(dataDir)
    expect(service.StateDirectoryMode).toEqual(['0700'])
  })

  test('comes back after a crash, not after a usage error, and outlives a task without memory', () => {
    expect([service.Restart, service.RestartPreventExitStatus, service.OOMPolicy]).toEqual([
      ['on-failure'],
      ['2'],
      ['continue'],
    ])
    expect(readUnit(unit).Install).toEqual({ WantedBy: ['multi-user.target'] })
  })
})

test('tasks of control may finish when it is stopped, for as long as it waits', async () => {
  const { KillMode, TimeoutStopSec } = serviceOf('taskmill-control.service')
  const { defaults } = await helpOf('taskmill-control')
  const neededMs = parseDurationMs(defaults['--shutdown-timeout']!)! + parseDurationMs(defaults['--kill-grace']!)!
  expect(KillMode).toEqual(['mixed'])
  expect(parseDurationMs(TimeoutStopSec![0]!)!).toBeGreaterThan(neededMs)
})

test('tasks of the runtime outlive it, under a user that stays, in control groups that it may divide', () => {
  const { KillMode, Delegate, DelegateSubgroup, User, DynamicUser } = serviceOf('taskmill-runtime.service')
  expect([KillMode, Delegate, DelegateSubgroup]).toEqual([['process'], ['yes'], ['taskmill-service']])
  expect([User, DynamicUser]).toEqual([['taskmill-runtime'], undefined as never])
})

test('nothing keeps the runtime from isolating tasks: no namespaces are refused, no part of /proc hidden', () => {
  const restrictions = Object.keys(serviceOf('taskmill-runtime.service')).filter((directive) =>
    /^(Restrict|Protect|Private|SystemCall|ProcSubset|MemoryDeny)/.test(directive),
  )
  expect(restrictions).toEqual([])
})

const analyze = Bun.which('systemd-analyze')

/** Of newer versions of systemd; an older one says that it ignores them. */
const NEWER = /Unknown key(?: name)? 'DelegateSubgroup' in section/

describe.skipIf(analyze === null)(`systemd-analyze${analyze === null ? ' (not in PATH)' : ''}`, () => {
  test('finds nothing wrong with the units', async () => {
    for (const program of Object.keys(PROGRAMS)) await builtProgram(program as ProgramName)
    using dir = tempDir()
    const dist = dirname(await builtProgram('taskmill'))
    const paths = UNITS.map((unit) => {
      const path = join(dir.path, unit)
      writeFileSync(path, readDeployed(unit).replaceAll('/usr/local/bin/', `${dist}/`))
      return path
    })
    const child = Bun.spawn([analyze!, 'verify', ...paths], {
      env: testEnvironment(),
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    const said = (stdout + stderr).split('\n').filter((line) => line.includes('taskmill') && !NEWER.test(line))
    expect({ exitCode: await child.exited, said }).toEqual({ exitCode: 0, said: [] })
  })
})
