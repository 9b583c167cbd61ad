/**
 * The network of a sandbox: its own where the task does not say, and no way to ask a service of ours for a task without a
 * sandbox. Source: contract 4; docs/sandbox.md. The built executable, real connections.
 */
import { describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { runClient } from '../support/client.ts'
import { connectClient } from '../support/mcp-client.ts'
import { asOrdinaryUser } from '../support/ordinary-user.ts'
import { startPair } from '../support/pair.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'
import { startTokenRuntime, TOKEN, WITH_TOKEN } from '../support/token-runtime.ts'

const isRoot = process.getuid?.() === 0
const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const skip = missingSandbox !== undefined

const sandboxed = (net?: boolean) => ({
  sandbox: { profile: 'linux_sandbox', ...(net !== undefined && { namespaces: { net } }) },
})
const strict = { policy: { capability_mode: 'strict' } }

/** Says `reached` where something listens at the address, else the system's reason. */
const connecting = (url: string) => {
  const { hostname, port } = new URL(url)
  const connect = `IO::Socket::INET->new(PeerAddr => "${hostname}", PeerPort => ${port}) ? "reached" : $@`
  return `perl -MIO::Socket::INET -e 'print ${connect}'`
}

const UNSHARE = process.arch === 'x64' ? 272 : 97
const CLONE_NEWUSER = 0x1000_0000

/** Runs the rest of the command line as root of a user namespace that has all users, and may have no network namespace. */
const WITHOUT_NETWORKS = `
  pipe(my $begun, my $begin); pipe(my $mapped, my $map); my $pid = $$;
  if (!fork) {
    sysread($begun, my $byte, 1);
    for my $name ("uid_map", "gid_map") { open(my $file, ">", "/proc/$pid/$name"); print $file "0 0 70000\n"; }
    syswrite($map, "x"); exit;
  }
  syscall(${UNSHARE}, ${CLONE_NEWUSER}) == 0 or die $!;
  syswrite($begin, "x"); sysread($mapped, my $byte, 1); wait;
  open(my $file, ">", "/proc/sys/user/max_net_namespaces") or die $!; print $file 0; close($file);
  exec @ARGV;`

describe.skipIf(skip)(`the network of a sandbox${why}`, () => {
  const settings = isRoot ? (['root', 'an ordinary user'] as const) : (['an ordinary user'] as const)
  test.each([...settings])(
    'is its own where the task does not say; only loopback is in it, and up: %s',
    async (who) => {
      const options = isRoot && who !== 'root' ? await asOrdinaryUser() : {}
      await using runtime = await startRuntime(options)
      const look = 'tail -n +3 /proc/net/dev | cut -d: -f1;'
      const task = await runtime.runScript(`${look} ${connecting(runtime.url)}`, { ...sandboxed(), ...strict })
      expect(task).toMatchObject({ status: 'success', execution_plan: { degraded: false, capability_warnings: [] } })
      // Without an address of its own the reason would be that the network cannot be reached.
      expect(
        task.stdout
          ?.trim()
          .split('\n')
          .map((line) => line.trim()),
      ).toEqual(['lo', expect.stringContaining('Connection refused')])
    },
  )

  test('is what sandbox.network says, else what the service is set to', async () => {
    await using usual = await startRuntime()
    await using open = await startRuntime({ flags: ['--default-network', 'host'] })
    const net = async (runtime: Runtime, sandbox: object) => {
      const task = await runtime.runScript(connecting(runtime.url), {
        sandbox: { profile: 'linux_sandbox', ...sandbox },
      })
      expect(task.status).toBe('success')
      const { requested_sandbox: asked, effective_sandbox: got } = task.execution_plan
      const isOwn = task.stdout !== 'reached'
      expect([asked.namespaces?.net, got.namespaces?.net]).toEqual([isOwn, isOwn])
      return [asked.network, isOwn ? 'none' : 'host']
    }
    expect(await net(usual, {})).toEqual([undefined, 'none'])
    expect(await net(usual, { network: 'none' })).toEqual(['none', 'none'])
    expect(await net(usual, { network: 'host' })).toEqual(['host', 'host'])
    expect(await net(open, {})).toEqual([undefined, 'host'])
    expect(await net(open, { network: 'none' })).toEqual(['none', 'none'])
    expect(await net(open, { namespaces: { net: true } })).toEqual([undefined, 'none'])
  })

  test('that a task lacks is named by its failure, with the setting', async () => {
    await using runtime = await startRuntime()
    const connect = `perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in(80, inet_aton("192.0.2.1"))) or die $!'`
    const task = await runtime.runScript(connect, sandboxed())
    expect(task.stderr).toContain('Network is unreachable')
    expect(task.error).toMatchObject({
      code: 'exit_nonzero',
      message: expect.stringMatching(/^task exited with code \d+$/),
      details: { remedy: expect.stringContaining('"sandbox": {"network": "host"}') },
    })
    const other = await runtime.runScript('echo "no such file" >&2; exit 3', sandboxed())
    expect(other.error).toEqual({ code: 'exit_nonzero', message: 'task exited with code 3' })
    const words = 'echo "curl: (6) Could not resolve host: x" >&2; exit 6'
    expect((await runtime.runScript(words, sandboxed(false))).error).not.toHaveProperty('details')
    expect((await runtime.runScript(words)).error).not.toHaveProperty('details')
  })

  test('that a task lacks is what the graph, the client and the tools for agents say to do', async () => {
    await using pair = await startPair()
    const { control } = pair
    const words = 'echo "curl: (6) Could not resolve host: x" >&2; exit 6'
    const params = { script: words, sandbox: { profile: 'linux_sandbox', network: 'none' } }
    const { graph_id } = await control.submit([{ id: 'a', type: 'runtime.script', params }])
    await control.ended('a')
    const remedy = expect.stringContaining('"sandbox": {"network": "host"}')
    const graph = (await (await control.fetch(`/graphs/${graph_id}`)).json()) as GraphDetails
    expect(graph.root_cause).toMatchObject({ task_id: 'a', code: 'exit_nonzero', remedy })
    const { stdout } = await runClient(['graph', graph_id, '-o', 'table'], { url: control.url })
    expect(stdout).toContain('\nto do: if the task needs the network')
    await using mcp = await connectClient(control.url)
    expect((await mcp.call('get_graph', { graph_id })).data).toMatchObject({ root_cause: { remedy } })
  })

  test('that contradicts another field is warned of at submission to control', async () => {
    await using pair = await startPair()
    const sandbox = { profile: 'linux_sandbox', network: 'host', namespaces: { net: true } }
    const { warnings } = await pair.control.submit([
      { id: 'a', type: 'runtime.script', params: { script: 'true', sandbox } },
    ])
    const message = expect.stringContaining('sandbox.network=host contradicts sandbox.namespaces.net=true')
    expect(warnings).toEqual([{ task_id: 'a', message }])
    expect(await pair.control.ended('a')).toMatchObject({
      status: 'failed',
      runtime: { error: { code: 'invalid_input', message } },
    })
  })

  test('is that of the host where the task says so, and the plan warns of the service without a token', async () => {
    await using runtime = await startRuntime()
    const task = await runtime.runScript(connecting(runtime.url), sandboxed(false))
    expect(task).toMatchObject({ status: 'success', stdout: 'reached' })
    expect(task.execution_plan.capability_warnings).toEqual([
      expect.stringMatching(/run by this service, which has no token, and a control service .*--token-file/),
    ])
  })

  test('is refused to a strict task where the control service has no token', async () => {
    await using service = await startTokenRuntime({ env: { SERVICE_TOKEN: TOKEN, SERVICE_CONTROL_ACCESS: 'open' } })
    const body = JSON.stringify({ ...script('true'), ...sandboxed(false), ...strict })
    const answer = await service.fetch('/api/v1/tasks', { method: 'POST', body, headers: WITH_TOKEN })
    expect(await refused(answer)).toEqual([
      400,
      'unsupported_capability',
      expect.stringContaining('the control service of this machine, which has no token'),
    ])
  })

  test.skipIf(!isRoot)(
    'of an adaptive task is that of the host where there can be no other, with the reason',
    async () => {
      await using runtime = await startRuntime({ through: ['perl', '-e', WITHOUT_NETWORKS] })
      const { sandbox } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
      expect([sandbox.linux_sandbox, sandbox.namespaces.net, sandbox.namespaces.mount]).toEqual([false, false, true])
      const task = await runtime.runScript('true', sandboxed())
      expect(task.execution_plan).toMatchObject({
        degraded: true,
        effective_sandbox: { profile: 'linux_sandbox', namespaces: { mount: true, net: false } },
        fallback_reasons: [
          expect.stringMatching(/^sandbox\.namespaces\.net is unavailable .*shares net with the host$/),
        ],
        capability_warnings: [expect.stringContaining('run by this service, which has no token')],
      })
      const answer = await runtime.post({ ...script('true'), ...sandboxed(), ...strict })
      expect(await refused(answer)).toEqual([
        400,
        'unsupported_capability',
        expect.stringMatching(/^sandbox\.namespaces\.net is unavailable: /),
      ])
    },
  )
})

test.skipIf(skip)(`no task in a sandbox can read the file of --token-file${why}`, async () => {
  using dir = tempDir('/opt')
  chmodSync(dir.path, 0o755)
  const file = join(dir.path, 'token')
  writeFileSync(file, `${TOKEN}\n`, { mode: 0o600 })
  const options = isRoot ? await asOrdinaryUser() : {}
  if (options.ownerUid !== undefined) chownSync(file, options.ownerUid, options.ownerUid)
  await using service = await startTokenRuntime({ ...options, flags: ['--token-file', file] })
  const body = JSON.stringify({ task_id: 'a', ...script(`cat ${file}`), ...sandboxed() })
  expect((await service.fetch('/api/v1/tasks', { method: 'POST', body, headers: WITH_TOKEN })).status).toBe(200)
  const ended = await service.fetch('/api/v1/tasks/a?wait_ms=20000', { headers: WITH_TOKEN })
  expect(((await ended.json()) as { stdout: string }).stdout).toBe('')
})

test.skipIf(skip || !isRoot)(
  `a token file for all to read is warned of, and no token to a task without mounts${why}`,
  async () => {
    using dir = tempDir('/opt')
    const file = join(dir.path, 'token')
    writeFileSync(file, `${TOKEN}\n`)
    chmodSync(file, 0o644)
    await using service = await startTokenRuntime({ flags: ['--token-file', file] })
    expect(service.log).toContainEqual(expect.objectContaining({ level: 'warn', token_file: file }))
    const sandbox = { profile: 'linux_sandbox', namespaces: { net: false, mount: false } }
    const body = JSON.stringify({ ...script('true'), sandbox, policy: { capability_mode: 'strict' } })
    const answer = await service.fetch('/api/v1/tasks', { method: 'POST', body, headers: WITH_TOKEN })
    const [status, code, message] = await refused(answer)
    expect([status, code]).toEqual([400, 'unsupported_capability'])
    expect(message).toContain('whose token file the task can read')
  },
)

test('who asks without a token is told in which file it is', async () => {
  using dir = tempDir()
  const file = join(dir.path, 'token')
  writeFileSync(file, `${TOKEN}\n`)
  await using service = await startTokenRuntime({ flags: ['--token-file', file] })
  const [status, code, message] = await refused(await service.fetch('/api/v1/tasks'))
  expect([status, code]).toEqual([401, 'unauthenticated'])
  expect(message).toBe(`a token is needed: send Authorization: Bearer <token> (the token is in ${file})`)
})
