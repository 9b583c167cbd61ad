/**
 * Goal: connections to the port of a sandbox reach the socket of the service whole, both ways, and nothing else does; what
 * passes them on has no rights and ends with its task. Method: servers at a Unix socket; clients in sandboxes.
 */
import { describe, expect, test } from 'bun:test'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { requestKill } from '../../../runtime/launch/launcher-files.ts'
import type { SandboxFeature } from '../../../runtime/plan/isolation.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { type LaunchedTask, launch, portableLauncher, rootTest, sh, shippedLauncher } from '../../support/launchers.ts'
import { describeSandboxes, launchIn, runIn, SANDBOX_UID, type Setting, USUAL } from '../../support/sandboxes.ts'
import { childrenOf, gone, linkOf } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const { errno } = constants

const PORT = 3128

/** What relay.h allows. */
const MAX_CONNECTIONS = 2048

const hasIpv6 = existsSync('/proc/net/if_inet6') && readFileSync('/proc/net/if_inet6', 'utf8') !== ''

/** The end of a service, in a directory of its user. */
class ServiceEnd implements AsyncDisposable {
  readonly sockets = new Set<Socket>()
  readonly #dir = tempDir()
  readonly #uid: number
  readonly #handle: (socket: Socket) => void
  #server: Server | undefined
  path: string

  constructor({ isRoot, uid }: Setting, handle: (socket: Socket) => void) {
    this.#uid = isRoot ? 0 : uid
    this.#handle = handle
    this.path = join(this.#dir.path, 'egress.sock')
    this.#own(this.#dir.path)
  }

  /** Listens at the path, as a service does that has just started. */
  async listen(): Promise<this> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.sockets.delete(socket))
      this.#handle(socket)
    })
    this.#server = server
    const nearby = join(this.#dir.path, 'new.sock')
    await new Promise<void>((resolve) => server.listen({ path: nearby, backlog: 4096 }, resolve))
    this.#own(nearby)
    renameSync(nearby, this.path)
    return this
  }

  /** Ends, as a service does that is killed: the socket stays where it is. */
  async leave(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    const server = this.#server
    this.#server = undefined
    if (server !== undefined) await new Promise((resolve) => server.close(resolve))
  }

  /** A directory whose path is longer than an address has room for. */
  goDeep(): this {
    const names = Array.from({ length: 8 }, (_, i) => `${i}`.repeat(60))
    for (let i = 1; i <= names.length; i++) {
      const path = join(this.#dir.path, ...names.slice(0, i))
      mkdirSync(path, { mode: 0o700 })
      this.#own(path)
    }
    this.path = join(this.#dir.path, ...names, 'e'.repeat(107))
    return this
  }

  get egress() {
    return { socket: this.path, port: PORT }
  }

  #own(path: string): void {
    if (process.getuid?.() === 0) chownSync(path, this.#uid, this.#uid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave()
    this.#dir[Symbol.dispose]()
  }
}

const echo = (socket: Socket) => void socket.pipe(socket)

const serviceOf = (setting: Setting, handle: (socket: Socket) => void): Promise<ServiceEnd> =>
  new ServiceEnd(setting, handle).listen()

/** A client: `dial` connects or returns undef, `rest` reads to the end. */
const client = (script: string): [string, ...string[]] => [
  '/usr/bin/perl',
  '-e',
  `use strict; use Socket; $| = 1; $SIG{PIPE} = 'IGNORE';
  sub dial {
    my $is_v6 = @_ > 0;
    socket(my $s, $is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0) or die "socket: $!";
    my $to = $is_v6 ? pack_sockaddr_in6(${PORT}, Socket::IN6ADDR_LOOPBACK) : pack_sockaddr_in(${PORT}, INADDR_LOOPBACK);
    return connect($s, $to) ? $s : undef;
  }
  sub rest { my ($s) = @_; my $all = ''; while (1) { my $n = sysread($s, $all, 65536, length $all); last unless $n } return $all }
  ${script}`,
]

/** Asks for an echo, and prints it. */
const ASK = 'my $s = dial() or die "no way: $!"; syswrite $s, "hello\\n"; shutdown($s, 1); print rest($s);'

/** Waits until the test says so: it makes this file in the workspace. */
const awaitFile = (name: string) => `select(undef, undef, undef, 0.01) until -e "${name}";`
const say = (task: LaunchedTask, name: string) => Bun.write(join(task.workdir, name), '')

const commOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return '' // it has ended
  }
}

/** The process that passes connections on, of a task that runs. */
async function forwarderOf(task: LaunchedTask): Promise<number> {
  const { launcher_pid } = await task.started()
  return childrenOf(launcher_pid).find((pid) => commOf(pid) === 'taskmill-egress')!
}

describeSandboxes('the way out of a sandbox', (setting) => {
  test.each(
    hasIpv6 ? [['127.0.0.1', 'dial()'] as const, ['::1', 'dial(6)'] as const] : [['127.0.0.1', 'dial()'] as const],
  )('is at %s before the program runs, and closes each direction by itself', async (_, dial) => {
    const heard: string[] = []
    await using service = await serviceOf(setting, (socket) => {
      let all = ''
      socket.on('data', (bytes) => {
        all += bytes
      })
      // An answer only after the end of the question, which must not end the connection.
      socket.on('end', () => socket.end(`${heard.push(all)}: ${all}`))
    })
    const script = `for (1..3) { my $s = ${dial} or die; syswrite $s, "question $_"; shutdown($s, 1); print rest($s), "\\n" }`
    const { stdout } = await runIn(setting, { command: client(script), egress: service.egress })
    expect(stdout).toBe('1: question 1\n2: question 2\n3: question 3\n')
  })

  test('passes on many bytes as they are, both ways at once', async () => {
    await using service = await serviceOf(setting, echo)
    const script = `my $s = dial() or die; my ($sent, $got, $sum, $same) = (0, 0, 24 * 1048576, 1);
      my $block = join '', map { pack 'N', $_ * 2654435761 % 4294967296 } 1..262144;
      if (fork == 0) { while ($sent < $sum) { $sent += syswrite($s, $block, 1048576 - $sent % 1048576, $sent % 1048576) or die } shutdown($s, 1); exit 0 }
      while (my $n = sysread($s, my $part, 1048576 - $got % 1048576)) { $same &&= $part eq substr($block, $got % 1048576, $n); $got += $n }
      wait; print "$got $same $?\\n"`
    const { stdout } = await runIn(setting, { command: client(script), egress: service.egress })
    expect(stdout).toBe(`${24 * 1_048_576} 1 0\n`)
  })

  test('slows a sender down to the speed of its receiver, and loses nothing', async () => {
    const { promise: whole, resolve } = Promise.withResolvers<number>()
    await using service = await serviceOf(setting, (socket) => {
      let bytes = 0
      socket.pause()
      socket.on('data', (part) => {
        bytes += part.length
      })
      socket.on('end', () => {
        resolve(bytes)
        socket.end('thanks')
      })
    })
    // It writes until nothing was taken for a while: what lies between both is bounded.
    const script = `use Fcntl; my $s = dial() or die; fcntl($s, F_SETFL, O_NONBLOCK); my $sent = 0; my $block = 'x' x 65536;
      while (1) { my $w = ''; vec($w, fileno $s, 1) = 1; last unless select(undef, $w, undef, 1); $sent += syswrite($s, $block) || 0; last if $sent > 64 * 1048576 }
      fcntl($s, F_SETFL, 0); shutdown($s, 1); print "$sent\\n"; print rest($s), "\\n"`
    await using task = launchIn(setting, { command: client(script), egress: service.egress })
    const sent = Number.parseInt(await task.printed('\n'), 10)
    expect(sent).toBeLessThan(32 * 1_048_576)
    for (const socket of service.sockets) socket.resume()
    expect(await whole).toBe(sent)
    await task.outcome()
    expect(task.stdout).toBe(`${sent}\nthanks\n`)
  })

  test('delivers an answer whose sender wanted to hear no more', async () => {
    await using service = await serviceOf(setting, (socket) =>
      socket.once('data', () => socket.end('refused', () => socket.destroy())),
    )
    const script = `my $s = dial() or die; my $r = ''; syswrite $s, 'x' x 1000; vec($r, fileno $s, 1) = 1; select($r, undef, undef, 20);
      for (1..100) { last unless syswrite $s, 'x' x 65536 } sysread($s, my $said, 100); print "$said\\n"`
    const { stdout } = await runIn(setting, { command: client(script), egress: service.egress })
    expect(stdout).toBe('refused\n')
  })

  test('ends connections while nobody listens, and serves again once somebody does', async () => {
    await using service = new ServiceEnd(setting, echo)
    const script = `for my $round (1..4) { print "$round: ", do { my $s = dial(); $s && syswrite($s, "hello") && shutdown($s, 1) ? rest($s) : '' }, "\\n"; ${awaitFile('$round')} }`
    await using task = launchIn(setting, { command: client(script), egress: service.egress })
    expect(await task.printed('1: ')).toBe('1: \n') // no socket at all
    await service.listen()
    await say(task, '1')
    await task.printed('2: hello\n')
    await service.leave()
    await say(task, '2')
    expect(await task.printed('3: ')).toEndWith('3: \n') // a socket of nobody
    await service.listen()
    await say(task, '3')
    expect(await task.printed('4: ')).toEndWith('4: hello\n')
    await say(task, '4')
    expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 0 })
  })

  test('takes so little of a processor that one connection can carry 200 MB/s', async () => {
    const bytes = 256 * 1_048_576
    const rate = async () => {
      const { promise: whole, resolve } = Promise.withResolvers<number>()
      await using service = await serviceOf(setting, (socket) => {
        let got = 0
        socket.on('data', (part) => {
          got += part.length
        })
        socket.on('end', () => resolve(got))
      })
      const script = `my $s = dial() or die; my $block = 'x' x 1048576; for (1..256) { my $at = 0; $at += syswrite($s, $block, 1048576 - $at, $at) || die while $at < 1048576 }
        shutdown($s, 1); sleep 600`
      await using task = launchIn(setting, { command: client(script), egress: service.egress })
      expect(await whole).toBe(bytes)
      // Processor time, user and system, in hundredths of a second. Other work on the machine can only add to it.
      const stat = readFileSync(`/proc/${await forwarderOf(task)}/stat`, 'utf8')
      const [user, system] = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 13)
        .map(Number)
      return bytes / 1e6 / ((user! + system!) / 100)
    }
    let best = 0
    for (let tries = 0; tries < 3 && best <= 200; tries++) best = Math.max(best, await rate())
    expect(best).toBeGreaterThan(200)
  })

  test('waits for a service whose queue is full, and loses no connection', async () => {
    await using service = new ServiceEnd(setting, echo)
    // One that has room for two, and takes the first once it is told to.
    const script = `socket(my $l, PF_UNIX, SOCK_STREAM, 0); bind($l, pack_sockaddr_un($ARGV[0])) or die "bind: $!"; chmod 0777, $ARGV[0]; listen($l, 1);
      print "listens\n"; my $go = <STDIN>; while (accept(my $c, $l)) { syswrite $c, rest($c); close $c }`
    const server = Bun.spawn([...client(script), service.path], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
    await server.stdout.getReader().read()
    const ask = `my @all = map { dial() || die } 1..40; for (0..39) { syswrite $all[$_], "number $_"; shutdown($all[$_], 1) } print "asked\n";
      print join(' ', grep { rest($all[$_]) eq "number $_" } 0..39), "\n"`
    await using task = launchIn(setting, { command: client(ask), egress: service.egress })
    await task.printed('asked\n')
    server.stdin.write('go\n')
    server.stdin.end()
    await task.outcome()
    server.kill()
    await server.exited
    expect(task.stdout).toBe(`asked\n${Array.from({ length: 40 }, (_, i) => i).join(' ')}\n`)
  })

  test('closes connections beyond its bound, and has room again when others end', async () => {
    await using service = await serviceOf(setting, (socket) => {
      socket.resume()
      socket.on('end', () => socket.end('bye'))
    })
    const most = MAX_CONNECTIONS + 10
    // A byte is read only of those that are closed.
    const script = `my @all = map { dial() || die "$_: $!" } 1..${most}; ${awaitFile('full')} my $closed = 0;
      for my $s (@all) { my $r = ''; vec($r, fileno $s, 1) = 1; $closed++ if select($r, undef, undef, 0) } print "$closed closed\\n";
      @all = (); ${awaitFile('empty')} my $s = dial() or die; shutdown($s, 1); print rest($s), "\\n"`
    await using task = launchIn(setting, {
      command: ['sh', '-c', 'ulimit -n 4096; exec "$@"', 'sh', ...client(script)],
      egress: service.egress,
    })
    await until(() => service.sockets.size, MAX_CONNECTIONS)
    const { pid } = await task.started()
    await until(() => closingIn(pid), 10)
    await say(task, 'full')
    await task.printed('10 closed\n')
    await until(() => service.sockets.size, 0)
    await say(task, 'empty')
    await task.outcome()
    expect(task.stdout).toBe('10 closed\nbye\n')
  })

  test('shows the task nothing but a port: no process, no descriptor', async () => {
    await using service = await serviceOf(setting, echo)
    const script = `${ASK} opendir my $d, '/proc'; print join(' ', sort grep { /^\\d+$/ } readdir $d), "\\n"; opendir my $f, '/proc/self/fd';
      print join(' ', sort grep { -e "/proc/self/fd/$_" && readlink("/proc/self/fd/$_") !~ m{^/proc|^socket} } grep { /\\d/ } readdir $f), "\\n"; kill 'KILL', -1; exec 'true'`
    const { stdout, ending } = await runIn(setting, { command: client(script), egress: service.egress })
    expect(stdout).toBe('hello\n1 2\n0 1 2\n')
    expect(ending).toEqual({ how: 'exited', exit_code: 0 })
  })

  test('ends with its task, and leaves nothing', async () => {
    await using service = await serviceOf(setting, echo)
    const script = `${ASK} my @open = map { dial() } 1..50; ${awaitFile('go')}`
    await using task = launchIn(setting, { command: client(script), egress: service.egress })
    await task.printed('hello\n')
    const forwarder = await forwarderOf(task)
    await say(task, 'go')
    const { ending, leftovers_killed, leftovers_alive } = await task.outcome()
    expect([ending, leftovers_killed, leftovers_alive]).toEqual([{ how: 'exited', exit_code: 0 }, 0, 0])
    expect(existsSync(`/proc/${forwarder}`)).toBe(false)
    await until(() => service.sockets.size, 0)
  })

  test('ends with its launcher', async () => {
    await using service = await serviceOf(setting, echo)
    await using task = launchIn(setting, {
      command: client(`${ASK} my $open = dial(); sleep 600`),
      egress: service.egress,
    })
    await task.printed('hello\n')
    const forwarder = await forwarderOf(task)
    const { launcher_pid, pid } = await task.started()
    process.kill(launcher_pid, 'SIGKILL')
    for (const each of [forwarder, pid]) await gone(each)
    await until(() => service.sockets.size, 0)
  })

  test('goes on while the task is asked to end', async () => {
    await using service = await serviceOf(setting, echo)
    const script = `$SIG{TERM} = sub { ${ASK} exit 3 }; print "ready\\n"; sleep 1 while 1`
    await using task = launchIn(setting, { command: client(script), egress: service.egress })
    await task.printed('ready\n')
    requestKill(task.dir)
    expect((await task.outcome()).ending).toEqual({ how: 'exited', exit_code: 3 })
    expect(task.stdout).toBe('ready\nhello\n')
  })

  test('is closed if its process is killed: the task goes on, without a way out', async () => {
    await using service = await serviceOf(setting, echo)
    const script = `${ASK} ${awaitFile('go')} print dial() ? "way out\\n" : "none\\n"`
    await using task = launchIn(setting, { command: client(script), egress: service.egress })
    await task.printed('hello\n')
    const forwarder = await forwarderOf(task)
    process.kill(forwarder, 'SIGKILL')
    await gone(forwarder)
    await say(task, 'go')
    const { ending, leftovers_killed } = await task.outcome()
    expect([ending, leftovers_killed, task.stdout]).toEqual([{ how: 'exited', exit_code: 0 }, 0, 'hello\nnone\n'])
  })

  test('needs the directory of its socket', async () => {
    await using service = new ServiceEnd(setting, echo)
    const socket = join(service.path, 'missing/egress.sock')
    const { ending, code } = await runIn(setting, { command: sh('true'), egress: { socket, port: PORT } })
    expect([ending, code]).toEqual([{ how: 'sandbox_setup_failed', step: 'egress', errno: errno.ENOENT }, 125])
  })

  test.each<[string, readonly SandboxFeature[]]>([
    ['a pid namespace', USUAL.filter((feature) => feature !== 'pid')],
    ['a filter', USUAL.filter((feature) => feature !== 'seccomp')],
    ['a file view', USUAL.filter((feature) => feature !== 'mount' && feature !== 'pid')],
  ])('is the same without %s', async (_, features) => {
    await using service = await serviceOf(setting, echo)
    const given = { command: client(`${ASK} exit 4`), egress: service.egress, sandbox: { features } }
    const { ending, stdout, leftovers_killed } = await runIn(setting, given)
    expect([ending, stdout, leftovers_killed]).toEqual([{ how: 'exited', exit_code: 4 }, 'hello\n', 0])
  })

  test.skipIf(missingCgroups !== undefined || !setting.isRoot)(
    'costs the task none of its processes, and its buffers are memory of the task',
    async () => {
      await using groups = testCgroups()
      await using service = await serviceOf(setting, echo)
      const cgroup = groups.tasks.forTask('task-1')!
      await using task = launchIn(setting, {
        ...{
          command: client(`${ASK} print fork ? "child\\n" : "none\\n"; ${awaitFile('go')}`),
          egress: service.egress,
        },
        ...{ cgroup, pids_max: 1 },
      })
      expect(await task.printed('none\n')).toBe('hello\nnone\n')
      const groupOf = (pid: number) => readFileSync(`/proc/${pid}/cgroup`, 'utf8').match(/^.*service\.task-1$/gm)
      const { pid } = await task.started()
      expect(groupOf(await forwarderOf(task))).toEqual(groupOf(pid))
      await say(task, 'go')
      await task.outcome()
      expect(groups.tasks.taskIds()).toEqual([])
    },
  )

  rootTest('is served by a process without rights', async () => {
    await using service = await serviceOf(setting, echo)
    await using task = launchIn(setting, { command: client(`${ASK} sleep 600`), egress: service.egress })
    await task.printed('hello\n')
    const { pid, launcher_pid } = await task.started()
    const forwarder = await forwarderOf(task)
    const status = Object.fromEntries(
      [...readFileSync(`/proc/${forwarder}/status`, 'utf8').matchAll(/^(\w+):\t(.*)$/gm)].map(([, key, value]) => [
        key,
        value,
      ]),
    )
    const none = '0000000000000000'
    const own = setting.isRoot ? 0 : setting.uid
    expect(status).toMatchObject({
      ...{ CapInh: none, CapPrm: none, CapEff: none, CapBnd: none, CapAmb: none, NoNewPrivs: '1', Seccomp: '2' },
      ...{ Uid: Array(4).fill(own).join('\t'), Gid: Array(4).fill(own).join('\t') },
    })
    const space = (of: number, name: string) => readlinkSync(`/proc/${of}/ns/${name}`)
    expect(space(forwarder, 'net')).toBe(space(pid, 'net'))
    expect(space(forwarder, 'pid')).toBe(space(launcher_pid, 'pid'))
    expect(readlinkSync(`/proc/${forwarder}/root`)).toBe(join(service.path, '..'))
    const open = readdirSync(`/proc/${forwarder}/fd`).map((fd) =>
      linkOf(`/proc/${forwarder}/fd/${fd}`).replace(/:\[\d+\]$/, ''),
    )
    expect(open.toSorted()).toEqual(['anon_inode:[eventpoll]', ...Array(hasIpv6 ? 2 : 1).fill('socket')])
    // Nobody looks into it or signals it, even where it can be seen.
    const look = Bun.spawnSync(['sh', '-c', `kill -KILL ${forwarder}; cat /proc/${forwarder}/maps`], {
      uid: SANDBOX_UID,
      gid: SANDBOX_UID,
    } as object)
    expect(`${look.stderr}`.match(/not permitted|denied/gi)).toHaveLength(2)
  })
})

/** Connections in the network of a process whose other end has closed them. */
const closingIn = (pid: number): number =>
  readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .filter((line) => line.trim().split(/ +/)[3] === '08').length

const ARGUMENTS = [
  ...['--task-id', 'task-1', '--task-dir', '/no/such', '--workdir', '/', '--wall-time-ms', '1000', '--grace-ms', '0'],
  ...['--max-output-bytes', '1', ...(process.getuid?.() === 0 ? ['--sandbox-uid', '1234'] : [])],
]

describe('arguments', () => {
  test.each([
    ['--egress-socket and --egress-port need each other', ['--sandbox', 'net', '--egress-socket', '/s']],
    ['--egress-socket and --egress-port need each other', ['--sandbox', 'net', '--egress-port', '80']],
    ['--egress-socket needs --sandbox net', ['--sandbox', 'pid', '--egress-socket', '/s', '--egress-port', '80']],
    ['--sandbox-uid, --mount and --egress-socket need --sandbox', ['--egress-socket', '/s', '--egress-port', '80']],
    ...['', 's', './s', '/', '/s/', `/${'s'.repeat(108)}`, `/${'s/'.repeat(2_048)}s`].map(
      (path): [string, string[]] => [
        path === ''
          ? 'an empty value: --egress-socket'
          : '--egress-socket must be an absolute path with a name of 1 to 107 bytes',
        ['--sandbox', 'net', '--egress-socket', path, '--egress-port', '80'],
      ],
    ),
    ...['0', '65536', '-1', '8o'].map((port): [string, string[]] => [
      'not a number that is possible: --egress-port',
      ['--sandbox', 'net', '--egress-socket', '/s', '--egress-port', port],
    ]),
  ])('are refused: %s', async (complaint, argv) => {
    await using task = launch(shippedLauncher, { command: ['true'], argv: [...ARGUMENTS, ...argv, '--', 'true'] })
    expect([await task.exited, await task.complaints()]).toEqual([125, `taskmill-launcher: ${complaint}\n`])
  })

  test.each(['--egress-socket', '--egress-port'])('are nothing for the portable launcher: %s', async (flag) => {
    const argv = [...ARGUMENTS.slice(0, 12), flag, flag === '--egress-port' ? '80' : '/s', '--', 'true']
    await using task = launch(portableLauncher, { command: ['true'], argv })
    expect([await task.exited, await task.complaints()]).toEqual([
      125,
      `taskmill-launcher: unknown argument: ${flag}\n`,
    ])
  })
})
