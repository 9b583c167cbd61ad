/**
 * Goal: what holds for every executor and tool: bad parameters are `invalid_input`, a result is JSON, the signal ends
 * it and it returns, and nothing is left behind.
 * Method: one suite over all of them, each with an input that succeeds, some that are bad, and one that lasts.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliSkillsExecutor } from '../../../control/executors/cli-skills.ts'
import { CommandSecrets } from '../../../control/executors/command-secrets.ts'
import { ExecutionError, type Executor } from '../../../control/executors/executor.ts'
import { dns } from '../../../control/executors/os/dns.ts'
import { file } from '../../../control/executors/os/file.ts'
import { FileRoot } from '../../../control/executors/os/file-root.ts'
import { http } from '../../../control/executors/os/http.ts'
import { noop } from '../../../control/executors/os/noop.ts'
import { OsExecutor } from '../../../control/executors/os/os.ts'
import { shell } from '../../../control/executors/os/shell.ts'
import { sleep } from '../../../control/executors/os/sleep.ts'
import { tcp } from '../../../control/executors/os/tcp.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { SkillsDirectory } from '../../../control/executors/skills.ts'
import { AddressGuard } from '../../../control/outbound/address-guard.ts'
import { ChecksumExecutor } from '../../../examples/executors/checksum.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { markedProcesses } from '../../../shared/process/processes.ts'
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts'
import { attemptMark, executableTask, testContext } from '../../support/executor-context.ts'
import { type FullListener, startFullListener } from '../../support/full-listener.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

/** The size of a file that takes no space and minutes to read. */
const ENDLESS_BYTES = 256 * 1024 ** 3

interface Case {
  readonly type: string
  readonly tool?: string
  /** Succeeds. */
  readonly good: () => unknown
  /** Not what the executor takes. */
  readonly bad: readonly unknown[]
  /** Lasts until it is ended. Absent where nothing lasts. */
  readonly lasting?: {
    readonly tool?: string
    readonly input: () => unknown
    /** True once it has come to where it lasts. */
    readonly isUnderWay: () => boolean
  }
}

let temp: TempDir
let server: Bun.Server<undefined>
let names: DnsServer
let full: FullListener
let executors: ExecutorRegistry
/** Requests for the address that never answers. */
let unanswered = 0
beforeAll(async () => {
  temp = tempDir()
  mkdirSync(join(temp.path, 'skills'))
  writeFileSync(join(temp.path, 'skills/last'), '#!/bin/sh\ntrap "" TERM; touch "$1"; while :; do sleep 0.02; done\n', {
    mode: 0o755,
  })
  writeFileSync(join(temp.path, 'zeros'), '')
  truncateSync(join(temp.path, 'zeros'), ENDLESS_BYTES)
  server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, idleTimeout: 0 },
    fetch(request) {
      if (new URL(request.url).pathname !== '/never') return new Response('here')
      unanswered++
      return new Promise<Response>(() => {})
    },
  })
  names = await startDnsServer({ 'mill.test': { txt: [['flour']] }, 'silent.test': { isSilent: true } })
  full = await startFullListener()
  const root = new FileRoot(temp.path)
  const directory = new SecretsDirectory('')
  const secrets = new CommandSecrets(directory, 'open')
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' }
  const commands = { policy: 'open', secrets, killGraceMs: 20, env } as const
  const skills = new SkillsDirectory(join(temp.path, 'skills'))
  const guard = new AddressGuard({ policy: 'any', flag: 'http-policy' })
  const tools = [shell(commands), file(root), http(root, guard, directory), dns([names.address]), tcp, sleep, noop]
  executors = new ExecutorRegistry([
    new OsExecutor(tools),
    new CliSkillsExecutor({ ...commands, skills }),
    new ChecksumExecutor(root),
  ])
})
afterAll(async () => {
  await server.stop(true)
  await names[Symbol.asyncDispose]()
  full[Symbol.dispose]()
  temp[Symbol.dispose]()
})

/** A file that a lasting command makes once it lasts. */
const mark = (name: string) => join(temp.path, name)

const CASES: readonly Case[] = [
  {
    ...{ type: 'os', tool: 'shell' },
    good: () => ({ command: 'echo', args: ['x'] }),
    bad: [{}, { command: '' }, { command: 7 }, { command: 'echo', args: 'x' }, { command: 'a\0b' }, 'echo'],
    lasting: {
      input: () => ({ script: `sleep 600 & : > ${mark('shell')}; wait` }),
      isUnderWay: () => existsSync(mark('shell')),
    },
  },
  {
    ...{ type: 'os', tool: 'file' },
    good: () => ({ action: 'stat', path: '.' }),
    bad: [{}, { action: 'read' }, { action: 'rename', path: 'x' }, { path: 'x' }, { action: 'read', path: 7 }, []],
  },
  {
    ...{ type: 'os', tool: 'http' },
    good: () => ({ url: server.url.href }),
    bad: [{}, { url: 'x' }, { url: 'file:///etc/passwd' }, { url: 'http://x', method: 'BREW' }, { url: 7 }, 'http://x'],
    lasting: { input: () => ({ url: `${server.url.href}never` }), isUnderWay: () => unanswered > 0 },
  },
  {
    ...{ type: 'os', tool: 'dns' },
    good: () => ({ name: 'mill.test', record: 'txt' }),
    bad: [{}, { name: '' }, { name: 'a b' }, { name: 7 }, { name: 'x', record: 'soa' }, 'mill.test'],
    lasting: {
      input: () => ({ name: 'silent.test', record: 'mx' }),
      isUnderWay: () => names.asked.includes('silent.test'),
    },
  },
  {
    ...{ type: 'os', tool: 'tcp' },
    good: () => ({ address: `127.0.0.1:${server.port}` }),
    bad: [{}, { address: 'x' }, { address: '::1:80' }, { address: 'x:0' }, { address: 'x:1', timeout_ms: 60_001 }, 80],
    lasting: { input: () => ({ address: full.address, timeout_ms: 60_000 }), isUnderWay: () => true },
  },
  {
    ...{ type: 'os', tool: 'sleep' },
    good: () => ({ duration_ms: 1 }),
    bad: [{ duration_ms: -1 }, { duration_ms: 600_001 }, { duration_ms: '1' }, 'long'],
    lasting: { input: () => ({ duration_ms: 600_000 }), isUnderWay: () => true },
  },
  { ...{ type: 'os', tool: 'noop' }, good: () => ({ message: 'x' }), bad: [{ message: 7 }, 'x', []] },
  {
    ...{ type: 'cli-skills' },
    good: () => ({ command: 'cat', stdin: 'x' }),
    bad: [{}, { command: '' }, { command: 7 }, { command: 'cat', stdin: 7 }, { command: 'a\0b' }, 'cat'],
    lasting: {
      tool: 'last',
      input: () => ({ args: [mark('skill')], stdin: 'x' }),
      isUnderWay: () => existsSync(mark('skill')),
    },
  },
  {
    ...{ type: 'checksum', tool: 'sha256' },
    good: () => ({ path: 'skills/last' }),
    bad: [{}, { path: 7 }, { path: 'x', expected: 'no' }, 'x'],
    lasting: { input: () => ({ path: 'zeros' }), isUnderWay: () => true },
  },
]

const execute = (type: string, toolName: string | undefined, input: unknown, context = testContext()) => {
  const executor = executors.get(type) as Executor
  return Promise.try(() => executor.execute(executableTask({ type, toolName, input }), context))
}

const openFiles = () => readdirSync('/proc/self/fd').length
let openBefore: number
beforeEach(() => {
  openBefore = openFiles()
})
afterEach(async () => {
  // A killed process may take its time on a busy machine.
  await until(() => markedProcesses(attemptMark).length, 0)
  await until(openFiles, (count) => count <= openBefore)
})

describe.each(CASES)('$type $tool', ({ type, tool, good, bad, lasting }) => {
  test('gives a result that is JSON', async () => {
    await execute(type, tool, good()) // opens what the process keeps for good, such as its event loop for sockets
    openBefore = openFiles()
    const result = await execute(type, tool, good())
    expect(result).toBeDefined()
    expect(JSON.parse(JSON.stringify(result))).toEqual(result as object)
  })

  test.each(bad.map((input) => [input]))('refuses %j as invalid_input, before it begins', async (input) => {
    const context = testContext()
    const error = await execute(type, tool, input, context).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(ExecutionError)
    expect(error).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(/./) })
    expect(context.calls).toEqual([])
  })

  test('returns when its signal had fired before it was called', async () => {
    const context = testContext()
    context.abort()
    await execute(type, tool, lasting?.input() ?? good(), context).catch(() => {})
  })

  if (lasting === undefined) return
  test('is ended by its signal and returns', async () => {
    const context = testContext()
    const ended = execute(type, lasting.tool ?? tool, lasting.input(), context).then(
      () => true,
      (error) => error instanceof ExecutionError,
    )
    await until(lasting.isUnderWay, (isUnderWay) => isUnderWay)
    context.abort()
    expect(await ended).toBe(true)
  })
})
