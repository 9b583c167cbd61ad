/**
 * Runs a test in a temporary kernel: `scripts/vm` with this checkout and this Bun.
 *
 * Tests that need it are skipped on a machine that cannot run one, with the reason in their names.
 * TASKMILL_MUST_SANDBOX=1 makes them fail instead.
 */
import { realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { mustSandbox } from './must-sandbox.ts'
import { testEnvironment } from './service.ts'

const ROOT = realpathSync(join(import.meta.dir, '../..'))
const VM = join(ROOT, 'scripts/vm')

/**
 * Milliseconds for a command in it, the boot included: it is some twenty times slower there to start a process, and slower
 * still on a machine that has other work.
 */
export const VM_PATIENCE_MS = 600_000

interface VmOptions {
  readonly cgroup?: 'v1' | 'v2' | 'hybrid'
  /** As a user to whom a part of the control groups was delegated, not as root. */
  readonly isUser?: boolean
  readonly env?: Readonly<Record<string, string>>
  /** Further flags of scripts/vm. */
  readonly flags?: readonly string[]
}

/** Runs a command in this checkout, in a kernel of its own. */
export async function inVm(command: readonly string[], { cgroup = 'v2', isUser, env, flags = [] }: VmOptions = {}) {
  const user = isUser === true ? ['--user'] : []
  const bun = dirname(realpathSync(process.execPath))
  const limit = ['--limit-s', `${VM_PATIENCE_MS / 1000 - 10}`]
  const child = Bun.spawn([VM, '--cgroup', cgroup, ...user, '--read', bun, ...limit, ...flags, ROOT, ...command], {
    env: testEnvironment({ TMPDIR: tmpdir(), ...env }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

/** Why there can be none here, or undefined. */
export const missingVm = ((): string | undefined => {
  const { stdout } = Bun.spawnSync([VM, '--missing'], { env: testEnvironment(), stderr: 'ignore' })
  return mustSandbox(stdout.toString().trim() || undefined)
})()
