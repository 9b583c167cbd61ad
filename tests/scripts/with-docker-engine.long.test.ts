/**
 * Goal: whatever comes of an engine, the command runs, knows what there is, and nothing stays. Method: stand-ins for
 * docker and dockerd; and a real engine beside whatever the machine has, where one can be started.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { allPids } from '../../shared/process/processes.ts'
import { ROOT } from '../support/deploy-files.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const SCRIPT = join(ROOT, 'scripts/with-docker-engine')

/** Says what the command is told, and ends with a code that nothing else ends with. */
const TELL = ['sh', '-c', 'echo "must=$TASKMILL_MUST_DOCKER no=$TASKMILL_NO_DOCKER"; exit 17']

/** Where nobody listens. */
const NOWHERE = 'unix:///nonexistent/docker.sock'

interface Tools {
  /** Programs that are found before all others, as shell scripts. */
  readonly standIns?: Readonly<Record<string, string>>
  readonly path?: string
}

async function run(command: readonly string[], { standIns = {}, path = process.env.PATH! }: Tools = {}) {
  using dir = tempDir()
  const bin = join(dir.path, 'bin')
  const temp = join(dir.path, 'temp')
  for (const place of [bin, temp]) mkdirSync(place)
  for (const [name, script] of Object.entries(standIns)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const child = Bun.spawn([SCRIPT, ...command], {
    env: testEnvironment({ PATH: `${bin}:${path}`, TMPDIR: temp, DOCKER_HOST: NOWHERE }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const exitCode = await child.exited
  return { exitCode, stdout, stderr, left: [...readdirSync(temp), ...tracesOf(child.pid)] }
}

/** What an engine of that script has left on this machine: its bridge, cgroups, mounts and processes. */
function tracesOf(pid: number): string[] {
  const name = `tmdocker${pid}`
  const cgroups = existsSync('/sys/fs/cgroup') ? readdirSync('/sys/fs/cgroup') : []
  return [
    ...(existsSync(`/sys/class/net/${name}`) ? [`bridge ${name}`] : []),
    ...['', ...cgroups].map((group) => join('/sys/fs/cgroup', group, name)).filter((path) => existsSync(path)),
    ...readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .filter((mount) => mount.includes(name)),
    ...allPids().filter((process) => commandLineOf(process).includes(name)),
  ].map(String)
}

function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return '' // it has just ended
  }
}

test('an engine that answers is taken', async () => {
  const standIns = { docker: 'exit 0', dockerd: 'echo "a second engine" >&2; exit 1', ip: 'exit 1' }
  expect(await run(TELL, { standIns })).toEqual({ exitCode: 17, stdout: 'must=1 no=\n', stderr: '', left: [] })
})

test('without dockerd the command is told, and runs', async () => {
  const { exitCode, stdout, stderr, left } = await run(TELL, { standIns: { docker: 'exit 1' }, path: '/usr/bin:/bin' })
  const reason = 'dockerd is not in PATH (Debian: docker.io, iproute2)'
  expect({ exitCode, stdout, left }).toEqual({ exitCode: 17, stdout: `must= no=${reason}\n`, left: [] })
  expect(stderr).toBe(`with-docker-engine: no engine, tests that need one are skipped: ${reason}\n`)
})

test('without a command it says how to call it', async () => {
  const { exitCode, stderr } = await run([])
  expect([exitCode, stderr]).toEqual([2, 'usage: scripts/with-docker-engine COMMAND [ARGUMENT]...\n'])
})

const canStart = process.getuid?.() === 0 && Bun.which('ip') !== null && Bun.which('unshare') !== null
const why = canStart ? '' : ' (skipped: needs root, ip and unshare)'

describe.skipIf(!canStart)(`an engine of its own${why}`, () => {
  test('that does not start is told with its last complaint', async () => {
    const standIns = {
      docker: 'exit 1',
      dockerd: 'echo "time=now level=info msg=starting"; echo "failed to start daemon: no room"; exit 1',
    }
    const { exitCode, stdout, left } = await run(TELL, { standIns })
    // Where not even a bridge or a namespace can be had, that is the reason.
    expect(stdout).toMatch(/^must= no=(failed to start daemon: no room|cannot make a bridge: .*|unshare: .*)\n$/)
    expect({ exitCode, left }).toEqual({ exitCode: 17, left: [] })
  }, 180_000)

  test('ends with the command, and leaves nothing of its containers, networks and mounts', async () => {
    const command = `
      [ -n "$TASKMILL_NO_DOCKER" ] && exit 18
      tar -c -C / bin/true | docker import - test-image > /dev/null
      docker network create test-network > /dev/null
      docker create --network test-network test-image true > /dev/null
      docker info --format '{{.Images}} {{.Containers}}'
      exit 17`
    const { exitCode, stdout, left } = await run(['sh', '-c', command])
    expect(left).toEqual([])
    if (exitCode !== 18) expect([exitCode, stdout]).toEqual([17, '1 1\n'])
    else expect(process.env.TASKMILL_MUST_DOCKER).not.toBe('1')
  }, 180_000)
})
