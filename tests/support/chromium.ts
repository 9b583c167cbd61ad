/** Debian's chromium, driven by playwright. Without it, tests of the dashboard are skipped with the reason. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { mustSandbox } from './must-sandbox.ts'

/** Milliseconds for one step on a page of a busy machine. */
const STEP_MS = 90_000

const EXECUTABLE = '/usr/bin/chromium'

/** Why no page can be opened on this machine. Undefined if one can. */
export const withoutChromium = mustSandbox(
  existsSync(EXECUTABLE) ? undefined : `${EXECUTABLE} is missing (apt-get install chromium)`,
)

export class TestBrowser implements AsyncDisposable {
  readonly #browser: Browser
  /** What the pages complained about: scripts that failed, and what the policy of the page refused. */
  readonly complaints: string[] = []

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  /** `localNames`: names of hosts that lead to this machine. */
  static async start(localNames: readonly string[] = []): Promise<TestBrowser> {
    const rules = localNames.map((name) => `MAP ${name} 127.0.0.1`).join()
    // Tests run as root, as which chromium has no sandbox.
    const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--host-resolver-rules=${rules}`]
    return new TestBrowser(await chromium.launch({ executablePath: EXECUTABLE, args }))
  }

  async open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
    context.setDefaultTimeout(STEP_MS)
    const page = await context.newPage()
    page.on('pageerror', (error) => this.complaints.push(error.message))
    page.on('console', (message) => {
      const text = message.text()
      if (message.type() === 'error' && !text.startsWith('Failed to load resource')) this.complaints.push(text)
    })
    await page.goto(url)
    return page
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }
}
