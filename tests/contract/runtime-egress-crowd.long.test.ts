/** A task that takes all connections that it gets, and reads nothing, does not keep others from theirs. The built service. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import { TestServer } from '../support/egress.ts'
import { startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { until } from '../support/until.ts'

const ENDLESS = new Uint8Array(256 * 1024)

describe.skipIf(missingSandbox !== undefined)(
  `a crowd of connections${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
  () => {
    test('leaves other tasks their own places, and its service answers', async () => {
      await using endless = await TestServer.start((socket) => {
        const more = () => {
          while (socket.write(ENDLESS));
        }
        socket.on('drain', more)
        more()
      })
      await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('hi') })
      await using runtime = await startRuntime({
        flags: ['--max-running-tasks', '2', '--max-egress-connections', '80'],
      })
      const under = (network: object) => ({
        sandbox: { profile: 'linux_sandbox', network: { allow: ['127.0.0.1'], ...network } },
      })
      const crowd = `exec perl -MIO::Socket::INET -e '
        my @all = map {
          my $s = IO::Socket::INET->new("127.0.0.1:3128") or die "$_: $@";
          if ($_ % 2) { print $s "CONNECT 127.0.0.1:${endless.port} HTTP/1.1\\r\\n\\r\\n"; $s->flush } $s
        } 1..120;
        $| = 1; print "all"; sleep 600'`
      const hostile = await runtime.script(crowd, under({ max_connections: 2_000 }))
      await runtime.printed(hostile, (stdout) => stdout === 'all')
      const look = (id: string) => runtime.json<TaskNetwork>(`/api/v1/tasks/${id}/network`)
      await until(
        () => look(hostile),
        ({ usage }) => (usage?.connections_refused ?? 0) > 0,
      )
      const gets = Array(20).fill(`curl --silent --noproxy '' --fail http://127.0.0.1:${server.port}/ & `).join('')
      const other: TaskStatusResponse = await runtime.runScript(`${gets} wait`, under({}))
      expect(other).toMatchObject({ status: 'success', stdout: 'hi'.repeat(20) })
      expect(other.usage?.network).toMatchObject({ connections_allowed: 20, connections_refused: 0 })
      const { open, connections } = await look(hostile)
      expect(open).toBeGreaterThan(0)
      expect(open).toBeLessThanOrEqual(60) // its own 20, and the common 40
      expect(connections.find(({ verdict }) => verdict === 'refused')?.message).toContain('--max-egress-connections')
      await runtime.kill(hostile)
      expect(await runtime.ended(hostile)).toMatchObject({ status: 'cancelled' })
      expect((await runtime.fetch('/healthz')).status).toBe(200)
    })

    test('is not needed for 200 MB/s: one stream takes so little of a processor', async () => {
      const megabytes = 400
      const parts = Array(megabytes / 8).fill(new Uint8Array(8_000_000))
      await using source = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(new Blob(parts)) })
      await using runtime = await startRuntime()
      // Processor time, user and system, in hundredths of a second. Other work on the machine can only add to it.
      const used = () => {
        const stat = readFileSync(`/proc/${runtime.process.pid}/stat`, 'utf8').split(') ')[1]!
        const [user, system] = stat.split(' ').slice(11, 13).map(Number)
        return user! + system!
      }
      const get = `curl --silent --show-error --noproxy '' --proxytunnel ${source.url} | wc --bytes`
      let best = 0
      for (let tries = 0; tries < 5 && best <= 200; tries++) {
        const before = used()
        const task = await runtime.runScript(get, {
          sandbox: { profile: 'linux_sandbox', network: { allow: ['127.0.0.1'] } },
        })
        expect(task).toMatchObject({ status: 'success', stdout: `${megabytes * 1e6}\n` })
        best = Math.max(best, megabytes / ((used() - before) / 100))
      }
      expect(best).toBeGreaterThan(200)
    }, 180_000)
  },
)
