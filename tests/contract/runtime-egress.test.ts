/**
 * A network with rules: tasks reach what the rules allow, through the proxy of the service, and nothing else. The built
 * executable, real sandboxes, real connections. Source: docs/sandbox.md.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_NETWORK_EVENTS } from '../../runtime/egress/report.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { RuntimeConfigSummary } from '../../shared/contract/runtime-info.ts'
import type { NetworkRules } from '../../shared/contract/runtime-request.ts'
import { answering, TestServer } from '../support/egress.ts'
import { FailingCalls, missingFailingCalls } from '../support/failing-calls.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { startPair } from '../support/pair.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const skip = missingSandbox !== undefined
const why = skip ? ` (skipped: ${missingSandbox})` : ''

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'

/** Loopback of the host is reached only through the proxy, so this variable must not keep clients from it. */
const THROUGH_PROXY = { NO_PROXY: '' }

const under = (network: NetworkRules, more: object = {}) => ({
  sandbox: { profile: 'linux_sandbox', network },
  policy: { capability_mode: 'strict' },
  ...more,
})
const curl = (url: string) => `curl --silent --show-error --noproxy '' '${url}'`

const run = (runtime: Runtime, script: string, network: NetworkRules, more: object = {}): Promise<TaskStatusResponse> =>
  runtime.runScript(script, under(network, more))

describe.skipIf(skip)(`a network with rules${why}`, () => {
  const settings = isRoot ? (['root', 'an ordinary user'] as const) : (['an ordinary user'] as const)
  test.each([...settings])('reaches what they allow, and nothing else: %s', async (who) => {
    await using server = await TestServer.start((socket) => {
      socket.once('data', () => socket.end(OK))
    })
    await using control = await TestServer.start(answering(OK))
    const options = isRoot && who !== 'root' ? await asOrdinaryUser() : {}
    await using runtime = await startRuntime({ ...options, flags: ['--control-addr', `:${control.port}`] })
    const url = `http://127.0.0.1:${server.port}/`
    const script = `${curl(url)}; echo; ${curl('http://10.0.0.1/')}; ${curl(`${runtime.url}/api/v1/tasks`)}
      ${curl(`http://127.0.0.1:${control.port}/`)}
      curl --silent --noproxy '*' --max-time 5 ${url} || echo "direct: $?"; tail -n +3 /proc/net/dev | cut -d: -f1`
    const task = await run(runtime, script, { allow: ['127.0.0.1'] })
    expect(task.status).toBe('success')
    const lines = task.stdout!.trim().split('\n')
    expect(lines.map((line) => line.trim())).toEqual([
      'hi',
      expect.stringContaining('10.0.0.1:80 is refused: its address is private'),
      expect.stringContaining('it is a service of taskmill, which no rule reaches'),
      expect.stringContaining('it is a service of taskmill, which no rule reaches'),
      'direct: 7',
      'lo',
    ])
    expect(task.execution_plan).toMatchObject({
      ...{ degraded: false, capability_warnings: [expect.stringContaining('NO_PROXY')] },
      effective_sandbox: {
        network: { allow: ['127.0.0.1'], deny: [], max_connections: 256 },
        namespaces: { net: true },
      },
    })
    expect(task.usage?.network).toEqual({
      ...{ connections_allowed: 1, connections_refused: 3 },
      ...{ bytes_sent: server.received.length, bytes_received: OK.length - 4 },
    })
    const told = (await runtime.events(task.task_id)).filter(({ event_type }) => event_type.startsWith('network_'))
    expect(told.map(({ event_type, data }) => [event_type, data.host, data.port])).toEqual([
      ['network_allowed', '127.0.0.1', server.port],
      ['network_refused', '10.0.0.1', 80],
      ['network_refused', '127.0.0.1', Number(new URL(runtime.url).port)],
      ['network_refused', '127.0.0.1', control.port],
    ])
    const metrics = await (await runtime.fetch('/metrics')).text()
    expect(metrics).toContain('service_runtime_network_connections_total{verdict="allowed"} 1\n')
    expect(metrics).toContain('service_runtime_network_connections_total{verdict="refused"} 3\n')
    expect(metrics).toContain('service_runtime_network_connections_open 0\n')
    expect(readdirSync(join(runtime.dataDir, 'egress'))).toEqual([])
  })

  test('carries a thousand connections of a task at once', async () => {
    await using server = await TestServer.start((socket) => void socket.pipe(socket))
    await using runtime = await startRuntime()
    const script = `ulimit -n 2048; exec perl -MIO::Socket::INET -e '
      my @all = map {
        my $s = IO::Socket::INET->new("127.0.0.1:3128") or die "$_: $@";
        print $s "CONNECT 127.0.0.1:${server.port} HTTP/1.1\\r\\n\\r\\n"; $s->flush; $s
      } 1..1000;
      for my $s (@all) { while (my $line = <$s>) { last if $line eq "\\r\\n" } }
      print { $all[$_] } "number $_\\n" for 0..999; $_->flush for @all;
      my $good = grep { readline($all[$_]) eq "number $_\\n" } 0..999; print "$good\\n"'`
    const task = await run(runtime, script, { allow: ['127.0.0.1'], max_connections: 1_000 })
    expect(task).toMatchObject({ status: 'success', stdout: '1000\n' })
    expect(task.usage?.network).toMatchObject({ connections_allowed: 1_000, connections_refused: 0 })
    const types = await runtime.eventTypes(task.task_id)
    expect(types.filter((type) => type === 'network_allowed')).toHaveLength(MAX_NETWORK_EVENTS)
    expect(types.filter((type) => type === 'network_unlisted')).toHaveLength(1)
  })

  test('has the variables that programs need, unless the task sets them', async () => {
    await using runtime = await startRuntime()
    const names = `env | grep -i proxy | sort`
    const [usual, own, none] = await Promise.all([
      run(runtime, names, {}),
      run(
        runtime,
        names,
        {},
        { execution: { kind: 'script', script: names, env: { http_proxy: 'http://x', NO_PROXY: '' } } },
      ),
      runtime.runScript(names, { sandbox: { profile: 'linux_sandbox' } }),
    ])
    expect(usual.stdout).toContain('HTTPS_PROXY=http://127.0.0.1:3128\n')
    expect(usual.stdout).toContain('http_proxy=http://127.0.0.1:3128\n')
    expect(usual.stdout).toContain('no_proxy=localhost,127.0.0.1,::1\n')
    expect(usual.stdout).toContain('npm_config_proxy=http://127.0.0.1:3128\n')
    expect(own.stdout).toContain('http_proxy=http://x\n')
    expect(own.stdout).toContain('NO_PROXY=\n')
    expect(own.stdout).not.toMatch(/^HTTP_PROXY|^no_proxy/m)
    expect(none.stdout).toBe('')
  })

  test('is bound by what the operator allows, as the configuration shows', async () => {
    await using server = await TestServer.start(answering(OK))
    const flags = [
      '--egress-allow',
      '127.0.0.0/8',
      '--egress-allow',
      '*.example:443',
      '--egress-deny',
      `127.0.0.1:${server.port}`,
    ]
    await using runtime = await startRuntime({ flags })
    const config = await runtime.json<RuntimeConfigSummary>('/api/v1/runtime/config')
    expect(config).toMatchObject({
      ...{ egress_allow: ['127.0.0.0/8', '*.example:443'], egress_deny: [`127.0.0.1:${server.port}`] },
      max_egress_connections: 4_096,
    })
    const task = await run(runtime, `${curl(`http://127.0.0.1:${server.port}/`)}; ${curl('http://pypi.org/')}`, {
      allow: ['*', '127.0.0.1'],
    })
    expect(task.stdout).toContain(`the rule 127.0.0.1:${server.port} denies it`)
    expect(task.stdout).toContain('pypi.org:80 is refused: no rule of sandbox.network.allow, or of --egress-allow')
    expect(server.received).toBe('')
  })

  test('tells a task that failed what was refused, and a program that does not ask the proxy', async () => {
    await using runtime = await startRuntime()
    const refused = await run(runtime, 'curl --silent --fail http://pypi.org/', { allow: ['*.python.org'] })
    expect(refused.error).toMatchObject({
      code: 'exit_nonzero',
      details: {
        remedy: expect.stringMatching(
          /^the connection to pypi\.org:80 is refused: .* add a rule to sandbox\.network\.allow$/,
        ),
      },
    })
    const direct = await run(runtime, "curl --noproxy '*' http://pypi.invalid/", { allow: ['pypi.invalid'] })
    expect(direct.error).toMatchObject({ details: { remedy: expect.stringContaining('only through the proxy') } })
  })

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'outlives its service: open connections are cut, then the same rules hold again (%s)',
    async (signal) => {
      await using server = await TestServer.start((socket, { received }) => {
        socket.on('data', () =>
          socket.write(received.includes('x') ? '' : 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi'),
        )
      })
      await using late = await TestServer.start(answering(OK))
      using dir = tempDir()
      await using _ = endProcessesOf(dir.path)
      const at = { dataDir: join(dir.path, 'data') }
      const go = join(dir.path, 'go')
      let id: string
      {
        await using runtime = await startRuntime(at)
        const script = `${curl(`http://127.0.0.1:${server.port}/`)} 2>/dev/null; echo " cut: $?"; ${waitFor('go')}
          ${curl(`http://127.0.0.1:${late.port}/`)}; ${curl('http://10.0.0.1/')}`
        id = await runtime.script(script, under({ allow: ['127.0.0.1'] }))
        await until(
          () => server.received,
          (text) => text.includes('GET'),
        )
        await runtime.json('/healthz') // what was sent is kept at the end of the turn that sent it
        await runtime.stop(signal)
      }
      await using runtime = await startRuntime(at)
      await runtime.printed(id, (stdout) => stdout.includes('cut: '))
      expect(existsSync(go)).toBe(false)
      await Bun.write(join(at.dataDir, 'tasks', id, 'workspace', 'go'), '')
      const task = await runtime.ended(id)
      expect(task.stdout).toMatch(/ cut: (18|52|56)\nhi/)
      expect(task.stdout).toContain('10.0.0.1:80 is refused')
      const { network } = task.usage!
      expect(network).toEqual({
        ...{ connections_allowed: 2, connections_refused: 1 },
        ...{ bytes_sent: server.received.length + late.received.length, bytes_received: expect.any(Number) },
      })
      const told = (await runtime.events(id)).filter(({ event_type }) => event_type === 'network_allowed')
      expect(told.map(({ data }) => [data.port, data.rule, data.cut])).toEqual([
        [server.port, '127.0.0.1', 'restart'],
        [late.port, '127.0.0.1', undefined],
      ])
      expect(told[0]!.message).toEndWith('cut, as the service was restarted')
      expect(readdirSync(join(at.dataDir, 'egress'))).toEqual([])
    },
  )

  test('has no more bytes after its service was killed than its rules allow', async () => {
    await using server = await TestServer.start((socket) => socket.on('data', () => socket.write('x'.repeat(2_000))))
    using dir = tempDir()
    await using _ = endProcessesOf(dir.path)
    const at = { dataDir: join(dir.path, 'data') }
    const connect = `perl -MIO::Socket::INET -e '
      my $s = IO::Socket::INET->new("127.0.0.1:3128") or die; my $go = shift; $| = 1;
      print $s "CONNECT 127.0.0.1:${server.port} HTTP/1.1\\r\\n\\r\\n"; $s->flush;
      while (my $line = <$s>) { last if $line eq "\\r\\n" }
      print $s "go"; $s->flush; my $n = 0; while ($n < 2000) { my $r = sysread($s, my $b, 4096) or last; $n += $r }
      print "got $n\\n"; if ($go) { sysread($s, my $b, 1) }'`
    let id: string
    {
      await using runtime = await startRuntime(at)
      const script = `${connect} 1; ${waitFor('go')}; ${connect} 0; ${curl(`http://127.0.0.1:${server.port}/`)}`
      id = await runtime.script(script, under({ allow: ['127.0.0.1'], max_bytes: 3_000 }))
      await runtime.printed(id, (stdout) => stdout === 'got 2000\n')
      await runtime.stop('SIGKILL')
    }
    await using runtime = await startRuntime(at)
    await Bun.write(join(at.dataDir, 'tasks', id, 'workspace', 'go'), '')
    const task = await runtime.ended(id)
    expect(task.stdout).toStartWith('got 2000\ngot 0\n')
    expect(task.stdout).toContain('the task has used sandbox.network.max_bytes')
    expect(task.usage?.network).toEqual({
      ...{ connections_allowed: 2, connections_refused: 1, bytes_sent: 4, bytes_received: 2_000 },
    })
  })

  test('works in a data directory whose path is longer than the address of a socket', async () => {
    await using server = await TestServer.start(answering(OK))
    using dir = tempDir()
    const dataDir = join(dir.path, 'd'.repeat(120), 'data')
    mkdirSync(dataDir, { recursive: true })
    await using runtime = await startRuntime({ dataDir })
    const task = await run(runtime, curl(`http://127.0.0.1:${server.port}/`), { allow: ['127.0.0.1'] })
    expect(task).toMatchObject({ status: 'success', stdout: 'hi' })
  })

  test.skipIf(missingFailingCalls !== undefined)(
    'is closed for a task that is refused after its launch was prepared',
    async () => {
      using dir = tempDir()
      using failing = new FailingCalls(dir.path)
      await using runtime = await startRuntime({ env: failing.env })
      const sockets = () => readdirSync(join(runtime.dataDir, 'egress'))
      await run(runtime, 'true', {})
      failing.fail('syncs')
      expect((await runtime.post({ execution: { kind: 'script', script: 'true' }, ...under({}) })).status).toBe(503)
      expect(sockets()).toEqual([])
      failing.fail('none')
      await until(async () => (await runtime.fetch('/readyz')).status, 200)
      expect(await run(runtime, 'true', {})).toMatchObject({ status: 'success' })
      expect(sockets()).toEqual([])
    },
  )

  test('ends with its task, also with one that is killed', async () => {
    await using server = await TestServer.start(() => {})
    await using runtime = await startRuntime()
    const id = await runtime.script(curl(`http://127.0.0.1:${server.port}/`), under({ allow: ['127.0.0.1'] }))
    await until(
      () => server.received,
      (text) => text.includes('GET'),
    )
    expect(readdirSync(join(runtime.dataDir, 'egress'))).toHaveLength(2) // its socket, and what it has used
    await runtime.kill(id)
    const task = await runtime.ended(id)
    expect(task.status).toBe('cancelled')
    expect(task.usage?.network).toMatchObject({ connections_allowed: 1, bytes_sent: server.received.length })
    expect(await runtime.eventTypes(id)).toContain('network_allowed')
    expect(readdirSync(join(runtime.dataDir, 'egress'))).toEqual([])
    await until(() => server.sockets.size, 0)
  })

  test('is passed through by control, which checks it, and whose address no rule reaches', async () => {
    await using server = await TestServer.start(answering(OK))
    await using pair = await startPair()
    const params = (network: object) => ({
      script: curl(`http://127.0.0.1:${server.port}/`),
      env: THROUGH_PROXY,
      sandbox: { profile: 'linux_sandbox', network },
    })
    const { control } = pair
    const reached = {
      script: `${curl(`${control.url}/tasks`)}`,
      sandbox: { profile: 'linux_sandbox', network: { allow: ['127.0.0.1'] } },
    }
    await control.submit([{ id: 'own', type: 'runtime.script', params: reached }])
    const refused = expect.stringContaining('it is a service of taskmill, which no rule reaches')
    expect(await control.ended('own')).toMatchObject({ result: { stdout: refused } })
    await control.submit([{ id: 'a', type: 'runtime.script', params: params({ allow: ['127.0.0.1'] }) }])
    expect(await control.ended('a')).toMatchObject({ status: 'success', result: { stdout: 'hi' } })
    const wrong = await control.submit([{ id: 'b', type: 'runtime.script', params: params({ allow: ['http://x'] }) }])
    expect(wrong.warnings).toEqual([
      { task_id: 'b', message: expect.stringContaining('sandbox.network.allow[0]: expected a host, not a URL') },
    ])
  })
})
