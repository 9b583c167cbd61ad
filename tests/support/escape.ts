/** Runs the escape program in a workspace of one test, with baits around it. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Attempt, type Listed, parseAttempts, parseList } from '../../runtime/escape/attempts.ts'
import { type BaitOptions, type Baits, layBaits } from '../../runtime/escape/baits.ts'
import { putEscapeProgram } from '../../runtime/escape/escape.ts'
import { testEnvironment } from './service.ts'
import { tempDir } from './temp.ts'

export interface EscapePlace extends AsyncDisposable {
  /** Where the program lies and runs. */
  readonly workspace: string
  readonly program: string
  readonly baits: Baits
  readonly baitArguments: readonly string[]
  /** What it says when `around` (a command that runs a command) runs it. */
  attempts(around?: readonly string[], extra?: readonly string[]): Promise<Attempt[]>
}

/** Somewhere with baits in `hiddenDirectories`. Everybody may enter and write the workspace. */
export async function escapePlace(
  hiddenDirectories: readonly string[],
  options: BaitOptions = {},
): Promise<EscapePlace> {
  const temp = tempDir()
  chmodSync(temp.path, 0o755)
  const workspace = join(temp.path, 'workspace')
  mkdirSync(workspace)
  chmodSync(workspace, 0o777)
  writeFileSync(join(temp.path, 'secret'), 'beside the workspace\n')
  const program = join(workspace, 'taskmill-escape')
  putEscapeProgram(program)
  const baits = await layBaits(program, [...hiddenDirectories, temp.path], options)
  const baitArguments = baits.list.flatMap((bait) => ['--bait', bait])
  return {
    ...{ workspace, program, baits, baitArguments },
    attempts: async (around = [], extra = []) => {
      const child = Bun.spawn([...around, program, ...baitArguments, ...extra], {
        cwd: workspace,
        env: testEnvironment(),
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      if ((await child.exited) !== 0 || stderr !== '') throw new Error(`${child.exitCode} ${stderr}`)
      return parseAttempts(stdout)
    },
    [Symbol.asyncDispose]: async () => {
      await baits.collect()
      temp[Symbol.dispose]()
    },
  }
}

/** Everything that it can try. */
export function listed(): Listed[] {
  using temp = tempDir()
  const program = join(temp.path, 'taskmill-escape')
  putEscapeProgram(program)
  return parseList(Bun.spawnSync([program, '--list'], { env: {} }).stdout.toString())
}
