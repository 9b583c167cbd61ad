/** Whether both services are there, in the version of this client. */
import { findSibling, siblingNotFound } from '../../shared/process/sibling.ts'
import { VERSION } from '../../shared/process/version.ts'
import { PROGRAMS } from '../start/up.ts'
import { type Finding, fine, wrong } from './finding.ts'
import { runProgram } from './program.ts'

type Environment = Readonly<Record<string, string | undefined>>

export const lookAtExecutables = (env: Environment): Promise<Finding[]> =>
  Promise.all(PROGRAMS.map((program) => lookAt(program, env)))

const REMEDY = 'Install the three executables of one release into one directory.'

async function lookAt(program: string, env: Environment): Promise<Finding> {
  const path = findSibling(program, env.PATH)
  if (path === null) return wrong(program, siblingNotFound(program), REMEDY)
  const ran = await runProgram([path, '--version'], env)
  if ('fault' in ran) return wrong(program, `${path} cannot run: ${ran.fault}`, REMEDY)
  const version = new RegExp(`^${program} (\\S+)`).exec(ran.stdout)?.[1]
  if (ran.exitCode !== 0 || version === undefined) {
    return wrong(program, `${path} --version does not answer: ${ran.stderr || ran.stdout}`, REMEDY)
  }
  if (version !== VERSION) return wrong(program, `${path} is ${version}, this client ${VERSION}`, REMEDY)
  return fine(program, `${path}, ${version}`)
}
