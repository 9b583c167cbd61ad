/**
 * Bundles the page. A macro: `control/http/dashboard.ts` calls it while it is itself compiled, and the executable holds
 * what it returned. From source, as tests run, it is called when that file is loaded.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Bundle {
  readonly script: string
  readonly style: string
}

export function dashboardBundle(): Bundle {
  // As a process: a macro must return at once, and `Bun.build` does not.
  const { stdout, stderr, exitCode } = Bun.spawnSync({
    cmd: [
      process.execPath,
      'build',
      '--minify',
      '--target=browser',
      '--format=esm',
      join(import.meta.dir, 'app/main.tsx'),
    ],
    cwd: import.meta.dir,
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (exitCode !== 0) throw new Error(`cannot bundle the dashboard: ${stderr}`)
  return { script: stdout.toString(), style: readFileSync(join(import.meta.dir, 'app/style.css'), 'utf8') }
}
