/**
 * Goal: a fork server that is root has networks ready for sandboxes, and no two tasks ever share one. Method: bare fork servers;
 * what their tasks and descriptors show.
 */
import { describe, expect, test } from 'bun:test'
import { chownSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { readRecord } from '../../../runtime/launch/launcher-files.ts'
import type { SandboxFeature } from '../../../runtime/plan/isolation.ts'
import { BareForkServer } from '../../support/fork-servers.ts'
import { describeLaunchers, type LauncherVariant, sh, shippedLauncher } from '../../support/launchers.ts'
import { missingSandbox, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'
import { childrenOf, linkOf } from '../../support/task-processes.ts'
import { missingTrace } from '../../support/trace.ts'
import { until } from '../../support/until.ts'

/** NETWORKS_KEPT of networks.h. */
const KEPT = 8

const isRoot = process.getuid?.() === 0
const why = missingSandbox ?? (isRoot ? undefined : 'only root has them')
const noted = (reason: string | undefined) => (reason === undefined ? '' : ` (skipped: ${reason})`)

const SHARED: readonly SandboxFeature[] = USUAL.filter((feature) => feature !== 'net')

/** A fork server, its tasks and what they print. */
class Tasks implements AsyncDisposable {
  readonly forkServer: BareForkServer
  #launches = 0

  constructor(variant: LauncherVariant, through: readonly string[] = []) {
    this.forkServer = new BareForkServer(variant, { through })
  }

  start(id: string, script: string, features = USUAL): void {
    const sandbox = { features, uid: SANDBOX_UID, workspace: this.forkServer.dirOf(id) }
    const request = this.forkServer.request(id, sh(script), ++this.#launches, { sandbox })
    chownSync(this.forkServer.dirOf(id), SANDBOX_UID, SANDBOX_UID)
    this.forkServer.write(request)
  }

  async run(id: string, script: string, features = USUAL): Promise<string> {
    this.start(id, script, features)
    await this.forkServer.hears(`gone ${id}`)
    return this.printed(id)
  }

  printed(id: string): string {
    return readFileSync(join(this.forkServer.dirOf(id), 'stdout.log'), 'utf8')
  }

  /** The networks that the fork server holds, its own among them. */
  networks(pid = this.forkServer.pid): string[] {
    const links = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`))
    return links.filter((link) => link.startsWith('net:['))
  }

  ready(count = KEPT): Promise<string[]> {
    return until(
      () => this.networks(),
      (all) => all.length === count + 1,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.forkServer[Symbol.asyncDispose]()
  }
}

const SHOW = 'readlink /proc/self/ns/net'
const ofHost = readlinkSync('/proc/self/ns/net')

describe.skipIf(why !== undefined)(`networks made ahead of time${noted(why)}`, () => {
  describeLaunchers(
    'a fork server',
    (variant) => {
      test('has none before a task needs one, and then as many as it keeps', async () => {
        await using tasks = new Tasks(variant)
        expect(await tasks.run('shares', SHOW, SHARED)).toBe(`${ofHost}\n`)
        expect(tasks.networks()).toEqual([])
        expect(await tasks.run('first', SHOW)).not.toBe(`${ofHost}\n`)
        const held = await tasks.ready()
        expect([held.includes(ofHost), new Set(held).size]).toEqual([true, KEPT + 1])
        const taken = (await tasks.run('second', SHOW)).trim()
        expect(held).toContain(taken)
      })

      test('gives each to one task, then to nobody: more tasks at once than it keeps', async () => {
        await using tasks = new Tasks(variant)
        await tasks.run('first', SHOW)
        await tasks.ready()
        const ids = Array.from({ length: 3 * KEPT }, (_, i) => `task-${i}`)
        for (const id of ids) tasks.start(id, `${SHOW}; exec sleep 600`)
        const seen = await until(
          () => ids.flatMap((id) => ownedBy(tasks, id)),
          (all) => all.length === ids.length,
        )
        expect(new Set(seen).size).toBe(ids.length)
        expect(seen).not.toContain(ofHost)
        const later = await tasks.ready()
        expect(later.filter((network) => seen.includes(network))).toEqual([])
        for (const id of ids) process.kill(readRecord(tasks.forkServer.dirOf(id)).process!.launcher_pid, 'SIGTERM')
        await tasks.forkServer.hears('gone', ids.length + 1)
      })

      test('gives it with loopback, empty, and without a descriptor; what a task leaves in it is gone', async () => {
        await using tasks = new Tasks(variant)
        await tasks.run('first', 'exit 0')
        await tasks.ready()
        // An abstract socket, and a port: both belong to a network.
        const script = `ls /proc/$$/fd; cut -d: -f1 -s /proc/net/dev | tr -d ' '; grep -c @ /proc/net/unix
          exec perl -e 'use Socket; $| = 1; socket(my $a, PF_UNIX, SOCK_STREAM, 0); bind($a, pack_sockaddr_un("\\0here")) or die "abstract: $!";
            socket(my $l, PF_INET, SOCK_STREAM, 0); bind($l, pack_sockaddr_in(4000, INADDR_LOOPBACK)) or die "port: $!"; listen($l, 1);
            socket(my $c, PF_INET, SOCK_STREAM, 0); connect($c, pack_sockaddr_in(4000, INADDR_LOOPBACK)) or die "connect: $!"; print "fine\\n"; kill KILL => $$'`
        for (let i = 0; i < KEPT + 4; i++) expect(await tasks.run(`task-${i}`, script)).toBe('0\n1\n2\nlo\n0\nfine\n')
      })

      test('stays in the network of the host', async () => {
        await using tasks = new Tasks(variant)
        for (let i = 0; i < 4; i++) {
          await tasks.run(`own-${i}`, SHOW)
          expect(await tasks.run(`shared-${i}`, SHOW, SHARED)).toBe(`${ofHost}\n`)
        }
        await tasks.ready()
        // It opens a network before it leaves it.
        await until(() => readlinkSync(`/proc/${tasks.forkServer.pid}/ns/net`), ofHost)
      })
    },
    { isPortableIncluded: false },
  )

  // A checker for leaks does not go with a tracer.
  describe.skipIf(missingTrace !== undefined)(`without what it needs${noted(missingTrace)}`, () => {
    test.each([
      ['makes none', 'unshare'],
      ['starts no loopback', 'ioctl'],
      ['can open none', 'socket'],
      ['may enter none', 'setns'],
    ])('a fork server that %s leaves it to its tasks', async (_, call) => {
      // Only of the fork server: launchers are not followed.
      const through = ['strace', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:error=EPERM`]
      await using tasks = new Tasks(shippedLauncher, through)
      for (let i = 0; i < 3; i++) expect(await tasks.run(`task-${i}`, SHOW)).toMatch(/^net:\[\d+\]\n$/)
      const [traced] = childrenOf(tasks.forkServer.pid)
      expect(tasks.networks(traced).length).toBe(1)
    })

    test('a fork server that cannot return to its network ends: another takes its place', async () => {
      const through = 'strace -qq -o /dev/null -e trace=setns -e inject=setns:error=EPERM:when=2+'.split(' ')
      await using tasks = new Tasks(shippedLauncher, through)
      tasks.start('task-1', `${SHOW}; sleep 600`)
      expect(await tasks.forkServer.process.exited).toBe(125)
      expect(
        await until(
          () => ownedBy(tasks, 'task-1'),
          (all) => all.length === 1,
        ),
      ).not.toEqual([ofHost])
      process.kill(readRecord(tasks.forkServer.dirOf('task-1')).process!.launcher_pid, 'SIGTERM')
      expect(await tasks.forkServer.complaints).toContain('cannot return to its network')
    })
  })
})

/** The network that a task has printed. */
function ownedBy(tasks: Tasks, id: string): string[] {
  try {
    return tasks.printed(id).split('\n').slice(0, -1)
  } catch {
    return [] // it has not begun
  }
}
