/** Goal: a command in a throw-away kernel is like one here, but for what it can do to this machine: nothing. */
import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/deploy-files.ts'
import { testEnvironment } from '../support/service.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { inVm, missingVm, VM_PATIENCE_MS } from '../support/vm.ts'

const VM = join(ROOT, 'scripts/vm')
const sh = (script: string) => ['sh', '-c', script]

async function vm(...args: string[]) {
  const child = Bun.spawn([VM, ...args], { env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('what is called wrongly is said', async () => {
  expect(await vm('--wrong', '/tmp', 'true')).toEqual({
    exitCode: 125,
    stdout: '',
    stderr: 'vm: unknown flag --wrong\n',
  })
  expect(await vm('/tmp')).toMatchObject({ exitCode: 125, stderr: expect.stringContaining('usage') })
  expect(await vm('--cgroup', 'v3', '/tmp', 'true')).toMatchObject({
    exitCode: 125,
    stderr: expect.stringContaining('v3'),
  })
})

describe.skipIf(missingVm !== undefined)(`a throw-away kernel${missingVm ? ` (skipped: ${missingVm})` : ''}`, () => {
  const dir = tempDir()
  afterAll(() => dir[Symbol.dispose]())

  test(
    'runs a command with its arguments, environment, streams and exit code, as root with cgroup v2',
    async () => {
      const env = { WORD: 'a b\n"c\'' }
      const script = `printf '%s|' "$@" "$WORD"; id -u; cat /proc/self/cgroup; cat /sys/fs/cgroup/cgroup.controllers
        echo complaint >&2; exit 37`
      const run = await inVm([...sh(script), 'sh', 'x y', "it's", ''], { env })
      expect(run).toMatchObject({ exitCode: 37, stderr: 'complaint\n' })
      const [words, ...lines] = [
        run.stdout.slice(0, run.stdout.lastIndexOf('|')),
        ...run.stdout.split('|').at(-1)!.split('\n'),
      ]
      expect(words).toBe(`x y|it's||${env.WORD}`)
      expect(lines).toEqual(['0', '0::/', expect.stringMatching(/memory.*pids|pids.*memory/), ''])
    },
    VM_PATIENCE_MS,
  )

  test(
    'runs it as a user in a delegated group, and Bun',
    async () => {
      const make = 'mkdir $VM_CGROUP/new && echo +memory +pids > $VM_CGROUP/cgroup.subtree_control'
      const run = await inVm(
        sh(
          `${make} && cat $VM_CGROUP/new/memory.max; cat /proc/self/cgroup; ${process.execPath} -e 'console.log(process.getuid())'`,
        ),
        { isUser: true },
      )
      expect(run).toEqual({ exitCode: 0, stdout: 'max\n0::/delegated/own\n1000\n', stderr: '' })
    },
    VM_PATIENCE_MS,
  )

  test(
    'has the controllers of version 1 when asked to',
    async () => {
      const { stdout } = await inVm(['cat', '/proc/self/cgroup'], { cgroup: 'v1' })
      expect(stdout).toMatch(/^\d+:memory:\/$/m)
      expect(stdout).toMatch(/^\d+:pids:\/$/m)
      expect(stdout).not.toContain('0::')
    },
    VM_PATIENCE_MS,
  )

  test(
    'can change nothing here but in its directory',
    async () => {
      writeFileSync(join(dir.path, 'seen'), 'yes\n')
      const script = `cat seen; echo made > made; for d in / /usr /etc /var /tmp /root; do echo x > $d/vm-was-here; done
        kill -9 ${process.pid}; exit 0`
      const { stdout } = await vm(dir.path, ...sh(script))
      expect(stdout).toBe('yes\n')
      expect(await Bun.file(join(dir.path, 'made')).text()).toBe('made\n')
      for (const place of ['/', '/usr', '/etc', '/var', '/tmp', '/root'])
        expect(existsSync(join(place, 'vm-was-here'))).toBe(false)
    },
    VM_PATIENCE_MS,
  )

  test(
    'ends in time, or when it is told to, and leaves nothing',
    async () => {
      using scratch = tempDir()
      const env = testEnvironment({ TMPDIR: scratch.path })
      const start = (...args: string[]) =>
        Bun.spawn([VM, ...args], { env, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
      const late = start('--limit-s', '4', dir.path, 'sleep', '600')
      expect(await new Response(late.stderr).text()).toBe('vm: not done within 4 s\n')
      expect(await late.exited).toBe(124)

      const killed = start(dir.path, ...sh('echo > booted; sync; sleep 600'))
      await until(
        () => existsSync(join(dir.path, 'booted')),
        (isThere) => isThere,
        { patienceMs: VM_PATIENCE_MS },
      )
      killed.kill('SIGTERM')
      expect(await killed.exited).toBe(143)
      expect(readdirSync(scratch.path)).toEqual([])
      expect(await noProcessesOf(scratch.path)).toEqual([])
    },
    VM_PATIENCE_MS,
  )
})
