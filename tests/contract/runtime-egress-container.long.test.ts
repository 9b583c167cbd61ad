/**
 * A network with rules in a container: the image of deploy/ in a real engine. Without rights of its own the service says what
 * a task gets, and refuses strict ones; with the rights that docs/sandbox.md names, a task reaches what its rules allow, and
 * nothing else.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { builtProgram } from '../../scripts/build.ts'
import type { SubmitTaskResponse, TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { BUILD_MS, debianImage, faultOfDebian, ownImage } from '../support/debian-image.ts'
import { ROOT } from '../support/deploy-files.ts'
import { docker, faultOfTheEngine, run } from '../support/docker-engine.ts'
import { freePort } from '../support/free-port.ts'
import type { Refused } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const fault = faultOfTheEngine ?? (await faultOfDebian())
if (fault !== undefined && process.env.TASKMILL_MUST_DOCKER === '1') throw new Error(fault)

const TOKEN = 'sesame-42'
const COMPOSE = ['--security-opt', 'no-new-privileges:true']

/** What docs/sandbox.md names for a service that is not root, and for one that is. */
const SANDBOXES = ['--security-opt', 'seccomp=unconfined', '--security-opt', 'systempaths=unconfined']
const SANDBOXES_OF_ROOT = ['--cap-add', 'SYS_ADMIN', '--cap-add', 'NET_ADMIN']

/** Says its port to each that connects, whatever that sends. */
const SERVERS = String.raw`use IO::Socket::INET; $| = 1; $SIG{PIPE} = "IGNORE";
  for my $port (8001, 8002) {
    next if fork;
    my $all = IO::Socket::INET->new(LocalPort => $port, Listen => 9, ReuseAddr => 1) or die $@;
    while (my $one = $all->accept) { sysread($one, my $head, 4096); print $one "HTTP/1.1 200 OK\r\n\r\nthis is $port"; close $one }
  }
  print "ready\n"; sleep 600`

/** The last line of what the first argument answers to a GET of the second, or why it cannot be asked. */
const ASK = String.raw`ask() { perl -MIO::Socket::INET -e '
  my ($to, $host) = @ARGV; my $s = IO::Socket::INET->new(PeerAddr => $to, Timeout => 5);
  if (!$s) { print "none: $!\n"; exit }
  print $s "GET http://$host/ HTTP/1.1\r\nHost: $host\r\n\r\n"; my @all = <$s>; print $all[-1] =~ /(.*)/, "\n"' "$@"; }`

describe.skipIf(fault !== undefined)(`a network with rules in a container${fault ? ` (none: ${fault})` : ''}`, () => {
  const ours = `taskmill-test-${crypto.randomUUID().slice(0, 8)}`
  const made = new AsyncDisposableStack()
  /** The address of two servers, on ports 8001 and 8002. */
  let servers: string
  // The runner would count skipped hooks as tests.
  if (fault === undefined) {
    beforeAll(async () => {
      await builtProgram('taskmill-runtime')
      const base = made.use(await debianImage(`${ours}-base`))
      const file = ['-f', 'deploy/runtime.Dockerfile', '--build-arg', `BASE=${base.name}`]
      await run(['docker', 'build', '-q', '-t', ours, ...file, '.'], { cwd: ROOT, limitMs: BUILD_MS })
      made.use(ownImage(ours))
      const name = await started('servers', '--entrypoint', 'perl', ours, '-e', SERVERS)
      servers = await docker('inspect', '--format', '{{.NetworkSettings.IPAddress}}', name)
      await until(
        () => docker('logs', name),
        (log) => log.includes('ready'),
      )
    }, BUILD_MS)
    afterAll(() => made.disposeAsync(), BUILD_MS)
  }

  async function started(name: string, ...args: string[]): Promise<string> {
    await docker('run', '--detach', '--init', '--name', `${ours}-${name}`, ...args)
    made.defer(async () => void (await docker('rm', '--force', '--volumes', `${ours}-${name}`)))
    return `${ours}-${name}`
  }

  /** The API of a service in a container that `docker run` starts with these arguments. */
  async function runtime(name: string, args: readonly string[], serve: readonly string[] = []) {
    const port = await freePort()
    const env = ['--env', `SERVICE_TOKEN=${TOKEN}`, '--env', 'SERVICE_CONTROL_ACCESS=token']
    const publish = ['--publish', `127.0.0.1:${port}:18080`]
    await started(name, ...env, ...publish, ...args, ours, 'serve', ...serve)
    const api = (path: string, init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: `Bearer ${TOKEN}` } })
    await until(
      () => api('/readyz').catch(() => undefined),
      (answer) => answer?.status === 200,
      { patienceMs: 60_000 },
    )
    const post = (script: string, mode: 'adaptive' | 'strict') => {
      const sandbox = { profile: 'linux_sandbox', network: { allow: [`${servers}:8001`] } }
      const body = { execution: { kind: 'script', script }, sandbox, policy: { capability_mode: mode } }
      return api('/api/v1/tasks', { method: 'POST', body: JSON.stringify(body) })
    }
    return {
      refusal: async (): Promise<Refused['error']> => ((await (await post('true', 'strict')).json()) as Refused).error,
      task: async (script: string, mode: 'adaptive' | 'strict'): Promise<TaskStatusResponse> => {
        const { task_id } = (await (await post(script, mode)).json()) as SubmitTaskResponse
        return (await (await api(`/api/v1/tasks/${task_id}?wait_ms=60000`)).json()) as TaskStatusResponse
      },
    }
  }

  const devices = 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " \\n"; echo'

  test('without rights: an adaptive task is told that it has no sandbox and no rules, a strict one is refused', async () => {
    const { task, refusal } = await runtime('plain', COMPOSE)
    const { status, stdout, execution_plan: plan } = await task(`${ASK}; ${devices}; ask ${servers}:8002 x`, 'adaptive')
    expect([status, stdout]).toEqual(['success', expect.stringMatching(/^\S*eth0\S*\nthis is 8002\n$/)])
    expect(plan).toMatchObject({ degraded: true, effective_sandbox: { profile: 'process' } })
    expect(plan.fallback_reasons).toEqual([
      expect.stringMatching(/^sandbox\.profile=linux_sandbox is unavailable .* without the rules of sandbox\.network$/),
    ])
    const remedy = expect.stringContaining(
      `in a container ${SANDBOXES.join(' ').replace(' --', ' and --')}, or for root`,
    )
    expect(await refusal()).toMatchObject({ code: 'unsupported_capability', details: { remedy } })
  })

  test('with half of them a strict task is refused, and the remedy is the other half', async () => {
    const { refusal } = await runtime('half', [...COMPOSE, ...SANDBOXES.slice(0, 2)])
    expect(await refusal()).toMatchObject({
      code: 'unsupported_capability',
      details: { remedy: expect.stringContaining(SANDBOXES.slice(2).join(' ')) },
    })
  })

  test('as root without the right to set up networks, a strict task is refused; an adaptive one has the host’s', async () => {
    const { task, refusal } = await runtime(
      'root',
      ['--user', '0', ...SANDBOXES_OF_ROOT.slice(0, 2)],
      ['--data-dir', '/srv/data'],
    )
    expect(await refusal()).toMatchObject({
      message: expect.stringMatching(/^sandbox\.network with rules is unavailable: /),
      details: { remedy: expect.stringContaining('in a container --cap-add NET_ADMIN') },
    })
    const { status, execution_plan: plan } = await task('true', 'adaptive')
    expect([status, plan.degraded, plan.effective_sandbox.network]).toEqual(['success', true, 'host'])
    expect(plan.fallback_reasons).toEqual([expect.stringContaining('the network of the host, without rules')])
  })

  test('as root, sandbox.chroot needs one right more', async () => {
    const doctor = (...args: string[]) => {
      const shell = ['--entrypoint', 'sh', ours, '-c', 'taskmill-runtime doctor; true']
      return docker('run', '--rm', '--init', '--user', '0', ...SANDBOXES_OF_ROOT, ...args, ...shell)
    }
    expect(await doctor()).toMatch(
      /^MISSING {2}sandbox\.chroot: .*\n.* in a container --security-opt seccomp=unconfined\.$/m,
    )
    expect(await doctor(...SANDBOXES.slice(0, 2))).toMatch(/^ok {7}sandbox\.chroot$/m)
  })

  test.each([
    ['of the image', [...COMPOSE, '--cap-drop', 'ALL', ...SANDBOXES], []],
    ['root', ['--user', '0', ...SANDBOXES_OF_ROOT], ['--data-dir', '/srv/data']],
  ] as const)('with the rights for sandboxes it is kept to its rules: the user %s', async (who, args, serve) => {
    const { task } = await runtime(`sandboxes-${who.replaceAll(' ', '-')}`, args, serve)
    const proxy = '127.0.0.1:3128'
    const asked = [`${servers}:8001`, `${servers}:8002`, '169.254.169.254', '127.0.0.1:18080']
    const script = `${ASK}; ${devices}; ${asked.map((host) => `ask ${proxy} ${host}`).join('; ')}
      ask ${servers}:8001 direct; ask 127.0.0.1:18080 direct`
    const { status, stdout, execution_plan: plan, usage } = await task(script, 'strict')
    expect(status).toBe('success')
    expect(stdout!.trim().split('\n')).toEqual([
      'lo',
      'this is 8001',
      ...asked
        .slice(1)
        .map((host) => expect.stringContaining(`${host.includes(':') ? host : `${host}:80`} is refused`)),
      'none: Network is unreachable',
      'none: Connection refused',
    ])
    expect(plan).toMatchObject({ degraded: false, effective_sandbox: { namespaces: { net: true } } })
    expect(usage?.network).toMatchObject({ connections_allowed: 1, connections_refused: 3 })
  })
})
