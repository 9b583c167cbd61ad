/**
 * Takes the pictures in docs/images: the dashboard at three widths, light and dark, in Debian's chromium.
 *
 *   bun scripts/screenshots.ts
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { chromium } from 'playwright-core'
import { builtProgram } from './build.ts'

const IMAGES = join(dirname(import.meta.dir), 'docs/images')

/** A slow task lasts as long as this script. */
const SLOW_MS = 600_000

const sleep = (id: string, duration_ms: number, ...depends_on: string[]) => ({
  ...{ id, type: 'sleep', params: { duration_ms }, depends_on },
})
const script = (id: string, text: string, ...depends_on: string[]) => ({
  ...{ id, type: 'shell', params: { script: text }, depends_on },
})
const suites = ['parser', 'planner', 'storage', 'network', 'sandbox', 'client']

/** A build in the middle: some of it done, some running, some waiting. */
const RUNNING = {
  name: 'build-and-test',
  labels: { branch: 'main', commit: '4f1c0de' },
  tasks: [
    script('checkout', 'echo checked out 4f1c0de'),
    sleep('restore-cache', 300, 'checkout'),
    sleep('toolchain', 700, 'checkout'),
    sleep('lint', 900, 'restore-cache'),
    sleep('types', 1_100, 'restore-cache'),
    sleep('compile', 1_300, 'restore-cache', 'toolchain'),
    sleep('compile-arm64', 1_500, 'toolchain'),
    ...suites.map((suite, index) => sleep(`test-${suite}`, index < 3 ? 400 * (index + 1) : SLOW_MS, 'compile')),
    sleep('test-arm64', SLOW_MS, 'compile-arm64'),
    ...['linux', 'container'].map((target) => sleep(`package-${target}`, 800, 'compile', 'lint', 'types')),
    sleep('coverage', 500, ...suites.map((suite) => `test-${suite}`)),
    sleep('sign', 500, 'package-linux', 'package-container'),
    sleep('publish', 500, 'sign', 'coverage', 'test-arm64'),
    sleep('announce', 200, 'publish'),
  ],
}

const LOG = `for i in $(seq 1 40); do printf '\\033[2m12:00:%02d\\033[0m migrate table %d \\033[32mok\\033[0m\\n' $i $i; done
printf '\\033[33mwarning: table 41 is locked, trying again\\033[0m\\n' >&2
printf '\\033[31merror: table 41 is locked by pid 3101\\033[0m\\n' >&2; exit 4`

/** A release that broke. */
const FAILED = {
  name: 'nightly-release',
  labels: { branch: 'release' },
  tasks: [
    script('snapshot', 'echo snapshot 812 MiB'),
    sleep('backup', 700, 'snapshot'),
    script('migrate', LOG, 'backup'),
    sleep('warm-cache', 900, 'snapshot'),
    sleep('deploy', 400, 'migrate', 'warm-cache'),
    sleep('smoke-test', 300, 'deploy'),
    sleep('announce', 100, 'smoke-test'),
  ],
}

const SMALL = { name: 'survey', tasks: [sleep('ask', 200), sleep('count', 300, 'ask'), sleep('report', 100, 'count')] }

const temp = mkdtempSync(join(tmpdir(), 'taskmill-screenshots-'))
const control = Bun.spawn([await builtProgram('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', temp], {
  env: { PATH: process.env.PATH ?? '', SERVICE_SHELL_POLICY: 'open', TZ: 'UTC' },
  stdout: 'pipe',
  stderr: 'inherit',
})
try {
  await takeAll(await listeningUrl(control.stdout))
} finally {
  control.kill('SIGKILL')
  await control.exited
  rmSync(temp, { recursive: true })
}

async function takeAll(url: string): Promise<void> {
  mkdirSync(IMAGES, { recursive: true })
  const submit = async (graph: object): Promise<string> => {
    const response = await fetch(`${url}/tasks`, { method: 'POST', body: JSON.stringify({ ...graph, scope: 'graph' }) })
    return ((await response.json()) as { graph_id: string }).graph_id
  }
  const small = await submit(SMALL)
  await fetch(`${url}/graphs/${small}?wait_ms=60000`)
  const failed = await submit(FAILED)
  await fetch(`${url}/graphs/${failed}?wait_ms=60000`)
  const running = await submit(RUNNING)
  await Bun.sleep(4_500)
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [name, hash, width, height] of [
      ['graph', `#/graphs/${running}`, 1440, 800],
      ['failure', `#/graphs/${failed}?task=migrate&tab=log`, 1440, 800],
      ['waterfall', `#/graphs/${running}?view=waterfall`, 1024, 700],
      ['phone', `#/graphs/${failed}`, 390, 780],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height }, colorScheme })
      await page.goto(`${url}/${hash}`)
      await page.locator('.stream.live').waitFor()
      await page.waitForTimeout(500) // motion ends
      await page.screenshot({ path: join(IMAGES, `dashboard-${name}-${colorScheme}.png`) })
      await page.close()
    }
  }
  await browser.close()
}

async function listeningUrl(stdout: ReadableStream<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of stdout) {
    text += new TextDecoder().decode(chunk)
    const found = /"url":"([^"]+)"/.exec(text)
    if (found !== null) return found[1]!
  }
  throw new Error(`control did not start: ${text}`)
}
