/**
 * Goal: the way of a new user, in an empty HOME: doctor, up, install-mcp, a graph with a sandboxed step, an agent's host, down.
 * Afterwards nothing is left but the state and the entry of the host. Method: the built executables in a directory of their
 * own, and a look at processes, ports, cgroups, mounts and files.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { ownPaths } from '../../adapter/own-services/record.ts'
import { isFree } from '../../adapter/start/ports.ts'
import { builtProgram, PROGRAMS, type ProgramName } from '../../scripts/build.ts'
import { allCgroups } from '../../scripts/left-cgroups.ts'
import { allPids } from '../../shared/process/processes.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { freePort } from '../support/free-port.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { endProcess } from '../support/stand-in-docker.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

interface Called {
  readonly exitCode: number
  readonly stderr: string
  readonly data: Record<string, unknown>
}

/** Pids of processes that have `path` in their environment or among their arguments, or that work there. */
const processesOf = (path: string): number[] =>
  allPids().filter((pid) =>
    ['environ', 'cmdline'].some((file) => {
      try {
        return pid !== process.pid && readFileSync(`/proc/${pid}/${file}`, 'latin1').includes(path)
      } catch {
        return false // it has ended, or belongs to another user
      }
    }),
  )

const cgroupsOf = (dataDir: string): string[] => {
  const id = serviceIdOf(dataDir)
  return allCgroups().filter((path) => path.split('/').includes(id))
}

const mountsBelow = (path: string): string[] =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(path))

test.skipIf(missingSandbox !== undefined)(
  `from an empty HOME to a graph and back, and nothing is left${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
  async () => {
    using place = tempDir()
    const [home, bin, tmp, project] = ['home', 'bin', 'tmp', 'project'].map((name) => join(place.path, name)) as [
      ...[string, string, string, string],
    ]
    for (const path of [home, bin, tmp, project]) mkdirSync(path)
    for (const name of Object.keys(PROGRAMS) as ProgramName[]) symlinkSync(await builtProgram(name), join(bin, name))
    const env = testEnvironment({ HOME: home, TMPDIR: tmp, PATH: `${bin}:/usr/bin:/bin` })
    const call = async (...args: string[]): Promise<Called> => {
      const child = Bun.spawn(['taskmill', ...args], {
        ...{ env, cwd: project, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      })
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      const { data = {} } = JSON.parse(stdout) as { data?: Record<string, unknown> }
      return { exitCode: await child.exited, stderr, data }
    }
    try {
      const paths = ownPaths({ HOME: home })
      const doctor = await call('doctor')
      expect(doctor.data.healthy).toBe(doctor.exitCode === 0)

      const ports = [await freePort(), await freePort()] as const
      const up = await call('up', '--port', String(ports[0]), '--runtime-port', String(ports[1]))
      expect([up.exitCode, up.data.started]).toEqual([0, true])
      expect((await call('status')).exitCode).toBe(0)
      // The looks below find what is there now.
      expect(processesOf(place.path).length).toBeGreaterThanOrEqual(2)
      expect(ports.map(isFree)).toEqual([false, false])
      expect(cgroupsOf(paths.data).length > 0).toBe(missingCgroups === undefined)

      // The line that up prints for the host.
      const [program, ...line] = String(up.data.agent_host).split(' ')
      expect(program).toBe('taskmill')
      const installed = await call(...line)
      expect(installed.data).toMatchObject({ written: true, file: join(home, '.claude.json') })

      // A sandboxed task does its work, and sees neither the token nor the data.
      const secret = `cat ${paths.token} ${paths.data}/* && echo seen || echo hidden; id -u; echo done`
      const graph = {
        tasks: [
          { id: 'first', type: 'shell', params: { command: 'echo', args: ['7'] } },
          {
            ...{ id: 'boxed', type: 'runtime.script', depends_on: ['first'] },
            params: {
              ...{ script: secret, limits: { memory_bytes: 64 * 1024 ** 2 } },
              sandbox: { profile: 'linux_sandbox' },
            },
          },
        ],
      }
      writeFileSync(join(project, 'graph.json'), JSON.stringify(graph))
      const ran = await call('run', 'graph.json')
      expect([ran.exitCode, ran.data.state]).toEqual([0, 'success'])
      const boxed = await call('get', `${ran.data.graph_id}/boxed`)
      const result = boxed.data.result as {
        stdout: string
        execution_plan: { effective_sandbox: { profile: string } }
      }
      expect(result.execution_plan.effective_sandbox.profile).toBe('linux_sandbox')
      expect(result.stdout).toMatch(/^hidden\n\d+\ndone\n$/)

      // The host starts what was written into its file.
      const host = JSON.parse(readFileSync(join(home, '.claude.json'), 'utf8')).mcpServers.taskmill
      const agent = new Client({ name: 'tests', version: '1' })
      await agent.connect(new StdioClientTransport({ command: host.command, args: host.args, env }))
      const answer = await agent.callTool({ name: 'list_tasks', arguments: { graph_id: ran.data.graph_id } })
      expect(JSON.stringify(answer.structuredContent)).toContain('boxed')
      await agent.close()

      const down = await call('down')
      expect(down.data).toMatchObject({ stopped: true, running: { attempts: 0, runtime_tasks: 0 } })

      expect(
        await until(
          () => processesOf(place.path),
          (pids) => pids.length === 0,
        ),
      ).toEqual([])
      expect(ports.map(isFree)).toEqual([true, true])
      expect(cgroupsOf(paths.data)).toEqual([])
      expect(mountsBelow(place.path)).toEqual([])
      expect(readdirSync(tmp)).toEqual([])
      expect(readdirSync(project)).toEqual(['graph.json'])
      expect(readdirSync(home).toSorted()).toEqual(['.claude.json', '.local'])
      expect(readdirSync(join(home, '.local'))).toEqual(['state'])
      expect(readdirSync(join(home, '.local', 'state'))).toEqual(['taskmill'])
      expect(readdirSync(dirname(dirname(paths.data))).toSorted()).toEqual(['start.lock', 'up'])
    } finally {
      for (const pid of processesOf(place.path)) await endProcess(pid)
    }
  },
)
