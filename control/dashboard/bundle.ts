/**
 * Bundles the page. A macro: `control/http/dashboard.ts` calls it while it is itself compiled, and the executable holds
 * what it returned. From source, as tests run, it is called when that file is loaded.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Bundle {
  readonly script: string
  /** A small script that runs before the page is painted. */
  readonly early: string
  readonly style: string
  /** HTML of the page before anything is read. */
  readonly shell: string
}

export function dashboardBundle(): Bundle {
  return {
    script: built('app/main.tsx', 'esm'),
    early: built('app/early.ts', 'iife'),
    style: readFileSync(join(import.meta.dir, 'app/style.css'), 'utf8'),
    shell: bun(['app/print-shell.tsx']).trim(),
  }
}

const built = (entry: string, format: 'esm' | 'iife'): string =>
  bun(['build', '--minify', '--target=browser', `--format=${format}`, entry])

/** Output of Bun with these arguments. As a process: a macro must return at once, and `Bun.build` does not. */
function bun(words: readonly string[]): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync({
    cmd: [process.execPath, ...words],
    cwd: import.meta.dir,
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (exitCode !== 0) throw new Error(`cannot bundle the dashboard: ${stderr}`)
  return stdout.toString()
}
