/**
 * The demo as people start it: with a terminal and without, interrupted, and when one of its services dies.
 * Whatever happens, no process and no file of it is left.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Subprocess } from 'bun'
import { builtProgram as binary } from '../../scripts/build.ts'
import { testEnvironment } from '../support/service.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const DEMO = join(dirname(dirname(import.meta.dir)), 'examples', 'demo', 'main.ts')

/** Milliseconds for one run on a busy machine, beside eight others; alone it takes about six seconds. */
const RUN_MS = 240_000

beforeAll(async () => {
  // Else the first runs would build them, all at the same time.
  await binary('taskmill-control')
  await binary('taskmill-runtime')
  await binary('taskmill')
}, RUN_MS)

interface Run {
  readonly process: Subprocess
  readonly exitCode: Promise<number>
  /** Standard output and standard error, or what the terminal got, so far. */
  output(): string
  /** What it left in its temporary directory. */
  leftFiles(): string[]
  /** Its processes: itself, its services and clients, and the tasks of both services. */
  processes(): { pid: number; command: string }[]
  type(text: string): void
}

interface RunOptions {
  /** Its size. Absent: no terminal. */
  readonly terminal?: { readonly cols: number; readonly rows: number }
  readonly env?: Readonly<Record<string, string>>
  /** A command of a shell in which "$@" is the demo. */
  readonly script?: string
}

/** Starts the demo in a directory of its own, which is not the project's. */
function startDemo({ terminal, env = {}, script }: RunOptions = {}): Run & Disposable {
  const dir: TempDir = tempDir()
  const temporary = join(dir.path, 'temporary')
  mkdirSync(temporary)
  const mark = crypto.randomUUID()
  let output = ''
  const decoder = new TextDecoder()
  const options = { cwd: dir.path, env: testEnvironment({ TMPDIR: temporary, DEMO_RUN: mark, HOME: dir.path, ...env }) }
  const command = [...(script === undefined ? [] : ['sh', '-c', script, 'sh']), process.execPath, DEMO]
  const child = terminal
    ? Bun.spawn(command, {
        ...options,
        terminal: {
          ...terminal,
          data(_, data) {
            output += decoder.decode(data, { stream: true })
          },
        },
      })
    : Bun.spawn(command, { ...options, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const collect = async (stream: unknown) => {
    if (!(stream instanceof ReadableStream)) return
    const ownDecoder = new TextDecoder()
    for await (const chunk of stream) output += ownDecoder.decode(chunk, { stream: true })
  }
  const reading = Promise.all([collect(child.stdout), collect(child.stderr)])
  const exitCode = child.exited.then(async (code) => {
    await reading
    return code
  })
  // Tasks of the runtime have an environment of their own, but their home is in our temporary directory.
  const processes = () => processesWith((variable) => variable === `DEMO_RUN=${mark}` || variable.includes(temporary))
  return {
    process: child,
    exitCode,
    output: () => output,
    leftFiles: () => readdirSync(temporary),
    processes,
    type: (text) => void child.terminal!.write(text),
    [Symbol.dispose]: () => {
      child.terminal?.close()
      for (const { pid } of processes()) kill(pid)
      dir[Symbol.dispose]()
    },
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has just ended
  }
}

function processesWith(isOurs: (variable: string) => boolean): { pid: number; command: string }[] {
  return readdirSync('/proc').flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return []
    try {
      if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').some(isOurs)) return []
      return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ') }]
    } catch {
      return [] // gone, or not ours to look at
    }
  })
}

/** The demo has told the terminal, or the pipe, that the first graph is under way. */
const isUnderWay = (run: Run) => hasShown(run, /fetch-dawn.*Fetch|fetch-dawn: (running|success)/)

/** The same of the second graph: a step of it runs in the runtime. The demo may miss one that runs for a moment only. */
const isBuilding = (run: Run) => hasShown(run, /(check-notes|press-dawn|press-noon|press-dusk|prove): running/)

const hasShown = (run: Run, text: RegExp) =>
  until(
    () => run.output(),
    (output) => text.test(output),
    { patienceMs: RUN_MS / 2 },
  )

function expectNothingLeft(run: Run): void {
  expect(run.processes()).toEqual([])
  expect(run.leftFiles()).toEqual([])
}

function expectTableAndReport(text: string): void {
  expect(text).toMatch(/^ read-report +success +\d/m)
  expect(text).toMatch(/^ fetch-species +success +×2 +\d/m)
  expect(text).toMatch(/^ find-unicorns +failed on purpose +[\d.]+m?s +command failed: exit status 1$/m)
  expect(text).toMatch(/^ list-unicorns +skipped +dependency find-unicorns failed$/m)
  expect(text).toMatch(/^ draw-unicorns +skipped +dependency list-unicorns skipp/m)
  expect(text).toContain('THE MILL POND: A SURVEY')
  expect(text).toMatch(/^ {4}heron +19 {2}#{19}$/m)
  expect(text).toMatch(/^ {4}bird +119 {2}#+$/m)
  expect(text).toMatch(/200 sightings of 21 species; \d+ lines of TypeScript in \d+ files\./)
  expect(text).toMatch(/32 tasks in \d+\.\d\ds, each as expected\./)
}

function expectBuild(text: string): void {
  expect(text).toMatch(/^ press-dawn +success +[\d.]+m?s +dawn\.html: 92 sightings$/m)
  expect(text).toMatch(/^ prove +success +[\d.]+m?s +10 lines, the last: 9 proofs, 0 failed$/m)
  expect(text).toMatch(/^ draw-panorama +failed on purpose +[\d.]+m?s +task e/m)
  expect(text).toMatch(/^ hang-panorama +skipped +dependency draw-panorama failed$/m)
  expect(text).toMatch(/^ deliver +success +[\d.]+m?s +200, \d+ bytes saved$/m)
  expect(text).toContain('THE MILL POND: A FIELD GUIDE')
  expect(text).toMatch(/4 pages, 200 sightings, \d+ bytes\. Built on /)
}

/** What it had to say is true: which of the ways to end is the one depends on the host. */
function expectTruth(text: string): void {
  const isFenced = !text.includes('without isolation (degraded)')
  const asked = [...text.matchAll(/^ (\d+) steps in the runtime asked for the profile linux_sandbox and got /gm)]
  // Two groups where the steps that fetch files have the network of the host, and the others their own.
  expect(asked.reduce((steps, [, count]) => steps + Number(count), 0)).toBe(9)
  if (!isFenced) expect(text).toMatch(/^ +sandbox\.profile=linux_sandbox is unavailable \(/m)
  const isByCgroup = /Limits that held: .*memory \(cgroup\)/.test(text)
  expect(text).toMatch(/^ draw-panorama failed\. What GET \/tasks\/draw-panorama says of it:$/m)
  const [code, how] = isByCgroup
    ? ['memory_limit_exceeded: task exceeded memory_bytes', 'by a memory cgroup']
    : ['exit_nonzero: task exited with code', 'as address space, RLIMIT_AS']
  expect(text).toContain(`   error   ${code}`)
  expect(text).toContain(`   limit   64 MiB of memory, ${how}`)
  expect(text).toMatch(/^ {3}usage {3}[\d.]+m?s, [\d.]+m?s of CPU, at most [\d.]+ MiB/m)
  expect(text).toMatch(/^ {3}to do {3}.*memory/m)
}

/** What stands on the terminal after `text`, of a terminal so large that nothing leaves it. */
function screenOf(text: string): string[] {
  const lines: string[] = []
  let row = 0
  let column = 0
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are told by control characters
  const withoutColours = text.replaceAll(/\x1b\[\d*m/g, '')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  for (const [part, up] of withoutColours.matchAll(/\x1b\[(\d+)A|\x1b\[[?0-9]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+/g)) {
    const line = lines[row] ?? ''
    if (up !== undefined) row -= Number(up)
    else if (part === '\r') column = 0
    else if (part === '\n') row++
    else if (part === '\x1b[K') lines[row] = line.slice(0, column)
    else if (part === '\x1b[J') lines.length = row
    else if (!part.startsWith('\x1b')) {
      lines[row] = line.slice(0, column).padEnd(column) + part + line.slice(column + part.length)
      column += part.length
    }
  }
  return Array.from(lines, (line) => line ?? '')
}

/** Runs what follows where `program` cannot be run, in sandboxes of that host neither: in a mount namespace of its own. */
const without = (program: string): string =>
  `exec unshare --mount sh -c 'while f=$(command -v ${program}); do mount --bind /dev/null "$f" || exit; hash -r; done; exec "$@"' sh "$@"`

/** Seconds that `withEndless` programs sleep: no other process of a run sleeps as long. */
const ENDLESS = '98765'

/** Runs what follows where `program` does not end by itself. */
const withEndless = (program: string): string =>
  `mkdir bin && printf '#!/bin/sh\nexec sleep ${ENDLESS}\n' > bin/${program} && chmod +x bin/${program} && PATH=$PWD/bin:$PATH exec "$@"`

describe.concurrent('the demo', () => {
  test(
    'without a terminal: a line for each change, the results, the report, and nothing left',
    async () => {
      // A proxy that nobody answers at: everything of the demo is on loopback. Settings of other services do not matter.
      const proxy = 'http://127.0.0.1:9'
      const settings = { SERVICE_TOKEN: 'other', SERVICE_ADDR: ':1', SERVICE_MAX_CONCURRENCY: '1' }
      using run = startDemo({ env: { HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy, ...settings } })
      expect({ exitCode: await run.exitCode, output: run.output() }).toMatchObject({ exitCode: 0 })
      const text = run.output()
      expect(text).not.toContain('\x1b')
      expect(text).toMatch(/^ +\d+\.\d\ds {2}fetch-dawn: running$/m)
      expect(text).toMatch(/^ +\d+\.\d\ds {2}fetch-dawn: success$/m)
      expect(text).toMatch(/^ +\d+\.\d\ds {2}fetch-species: success \(attempt 2\)$/m)
      expect(text).toMatch(/^ +\d+\.\d\ds {2}draw-unicorns: skipped: dependency list-unicorns skipped$/m)
      expect(text).toMatch(/^ +\d+\.\d\ds {2}draw-panorama: failed: task e/m)
      expectTableAndReport(text)
      expectBuild(text)
      expectTruth(text)
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'with a terminal: redrawn in place, in colours, and the cursor is given back',
    async () => {
      using run = startDemo({ terminal: { cols: 100, rows: 40 }, env: { TERM: 'xterm-256color' } })
      expect({ exitCode: await run.exitCode, output: run.output() }).toMatchObject({ exitCode: 0 })
      const text = run.output()
      expect(text).toContain('\x1b[32m✓')
      expect(text.lastIndexOf('\x1b[?25h')).toBeGreaterThan(text.lastIndexOf('\x1b[?25l'))
      const screen = screenOf(text)
      expect(screen.filter((line) => line.includes('examples/survey.json on http'))).toHaveLength(1)
      expect(screen.filter((line) => line.includes('examples/build.json on http'))).toHaveLength(1)
      expect(screen.filter((line) => line.startsWith(' ✓ '))).toHaveLength(17 + 10 + 1)
      expect(screen.filter((line) => line.startsWith(' ✗ find-unicorns'))).toHaveLength(1)
      expect(screen.filter((line) => line.startsWith(' ✗ draw-panorama'))).toHaveLength(1)
      expect(screen.filter((line) => line.startsWith(' ↷ '))).toHaveLength(2 + 1)
      expect(screen.filter((line) => /^ ✓ fetch-species .*━+.*×2 +[\d.]+m?s$/.test(line))).toHaveLength(1)
      const shown = screen.map((line) => line.trimEnd()).join('\n')
      expectTableAndReport(shown)
      expectBuild(shown)
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'with a small terminal and NO_COLOR: no line is longer than it, no frame higher',
    async () => {
      const env = { TERM: 'xterm-256color', NO_COLOR: '1' }
      using run = startDemo({ terminal: { cols: 44, rows: 12 }, env })
      expect(await run.exitCode).toBe(0)
      const text = run.output()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
      expect(text).not.toMatch(/\x1b\[\d*m/)
      const ups = [...text.matchAll(/\[(\d+)A/g)].map(([, rows]) => Number(rows))
      expect(ups.length).toBeGreaterThan(10)
      expect(Math.max(...ups)).toBeLessThan(12)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a view hides the cursor while it is shown
      const views = text.match(/\x1b\[\?25l.*?\x1b\[\?25h/gs) ?? []
      expect(views).toHaveLength(2)
      const widths = Bun.stripANSI(views.join(''))
        .split(/\r?\n/)
        .map((line) => Bun.stringWidth(line))
      expect(Math.max(...widths)).toBeLessThan(44)
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'Ctrl-C stops everything: exit code 130',
    async () => {
      using run = startDemo({ terminal: { cols: 100, rows: 40 } })
      await isUnderWay(run)
      expect(run.processes().some(({ command }) => command.includes('taskmill-control'))).toBe(true)
      run.type('\x03')
      expect({ exitCode: await run.exitCode, output: run.output() }).toMatchObject({ exitCode: 130 })
      expect(run.output()).toContain('Interrupted. Everything is stopped.')
      expect(run.output().lastIndexOf('\x1b[?25h')).toBeGreaterThan(run.output().lastIndexOf('\x1b[?25l'))
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'a control service that dies is told, with the end of its log, and the processes of its tasks are ended: exit code 1',
    async () => {
      using run = startDemo({ script: withEndless('find') })
      await isUnderWay(run)
      await until(
        () => run.processes(),
        (processes) => processes.some(({ command }) => command.includes(ENDLESS)),
      )
      const control = run.processes().find(({ command }) => command.includes('taskmill-control'))!
      process.kill(control.pid, 'SIGKILL')
      expect(await run.exitCode).toBe(1)
      expect(run.output()).toContain('The demo failed: ')
      expect(run.output()).toContain('"msg":"listening"')
      expect(run.output()).not.toContain('THE MILL POND')
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'a runtime service that dies is told, and what it ran is ended: exit code 1',
    async () => {
      using run = startDemo()
      await isBuilding(run)
      const runtime = run.processes().find(({ command }) => command.includes('taskmill-runtime serve'))!
      process.kill(runtime.pid, 'SIGKILL')
      expect(await run.exitCode).toBe(1)
      expect(run.output()).toContain('The demo failed: the runtime service ended by itself (SIGKILL)')
      expect(run.output()).not.toContain('A FIELD GUIDE')
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'SIGTERM stops everything, also what the runtime runs: exit code 143',
    async () => {
      using run = startDemo()
      await isBuilding(run)
      run.process.kill('SIGTERM')
      expect(await run.exitCode).toBe(143)
      expect(run.output()).not.toContain('A FIELD GUIDE')
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  const why =
    Bun.which('perl') === null ? 'perl is not here' : process.getuid?.() === 0 ? '' : 'only root hides a program'
  test.skipIf(why !== '')(
    `on a host without curl its stand-in does${why === '' ? '' : ` (skipped: ${why})`}`,
    async () => {
      using run = startDemo({ script: without('curl') })
      expect({ exitCode: await run.exitCode, output: run.output() }).toMatchObject({ exitCode: 0 })
      expectBuild(run.output())
      expectNothingLeft(run)
    },
    RUN_MS,
  )

  test(
    'a reader that leaves stops everything',
    async () => {
      using run = startDemo({ script: '"$@" | head -n 3' })
      await run.exitCode
      await until(() => run.processes().length, 0)
      expect(run.output()).not.toContain('THE MILL POND')
      expectNothingLeft(run)
    },
    RUN_MS,
  )
})
