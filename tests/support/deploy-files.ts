/** Reads the files of deploy/, and asks the executables that they name for their settings. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram, PROGRAMS, type ProgramName } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'

export const ROOT = dirname(dirname(import.meta.dir))
export const DEPLOY = join(ROOT, 'deploy')

export const readDeployed = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8')

export interface Instruction {
  readonly name: string
  readonly value: string
}

/** Instructions of a Dockerfile in their order, their lines joined, without comments. */
export function readDockerfile(name: string): Instruction[] {
  const text = readDeployed(name)
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n/g, '')
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, instruction, value] = /^([A-Z]+)\s+(.*)$/.exec(line)!
      return { name: instruction!, value: value! }
    })
}

/** The values of an instruction. */
export const valuesOf = (instructions: readonly Instruction[], name: string): string[] =>
  instructions.filter((instruction) => instruction.name === name).map(({ value }) => value)

/** The value of an instruction that must be there once. */
export function onlyValueOf(instructions: readonly Instruction[], name: string): string {
  const values = valuesOf(instructions, name)
  if (values.length !== 1) throw new Error(`${name} is there ${values.length} times`)
  return values[0]!
}

/** `ENV A=1 B=2`. */
export const variablesOf = (instructions: readonly Instruction[]): Record<string, string> =>
  Object.fromEntries(
    valuesOf(instructions, 'ENV').flatMap((value) => value.split(/\s+/).map((pair) => pair.split(/=(.*)/).slice(0, 2))),
  )

interface ComposeService {
  readonly image: string
  readonly build: { readonly context: string; readonly dockerfile: string; readonly args: Record<string, string> }
  readonly environment: Readonly<Record<string, string>>
  readonly ports: readonly string[]
  readonly volumes: readonly string[]
  readonly init: boolean
  readonly restart: string
  readonly stop_grace_period?: string
}

interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly volumes: Readonly<Record<string, unknown>>
}

export const readCompose = (): Compose => Bun.YAML.parse(readDeployed('docker-compose.yml')) as Compose

/** Directives of a unit by section, each with all its values. */
export function readUnit(name: string): Record<string, Record<string, string[]>> {
  const unit: Record<string, Record<string, string[]>> = {}
  let section = ''
  for (const line of readDeployed(name).split('\n')) {
    const header = /^\[(\w+)\]$/.exec(line)
    if (header !== null) section = header[1]!
    if (header !== null || line === '' || line.startsWith('#')) continue
    const [, key, value] = /^(\w+)=(.*)$/.exec(line)!
    const directives = unit[section] ?? {}
    unit[section] = { ...directives, [key!]: [...(directives[key!] ?? []), value!] }
  }
  return unit
}

interface Help {
  readonly flags: readonly string[]
  readonly variables: readonly string[]
  /** By flag, where there is one. */
  readonly defaults: Readonly<Record<string, string>>
}

const isProgram = (name: string): name is ProgramName => name in PROGRAMS

/** What `--help` of a program, or of one of its subcommands, has. Fails where there is no such subcommand. */
export async function helpOf(program: ProgramName, subcommands: readonly string[] = []): Promise<Help> {
  const child = Bun.spawn([await builtProgram(program), ...subcommands, '--help'], {
    env: testEnvironment(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const text = stdout + stderr
  if ((await child.exited) !== 0) throw new Error(`${[program, ...subcommands].join(' ')} --help: ${text}`)
  const all = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, found]) => found!)
  const defaults = text.matchAll(/^ {2}(--[a-z-]+).*\n.*\n +\[.*default ([^;\]]+)/gm)
  return {
    flags: all(/^ {2}(--[a-z-]+)/gm),
    variables: [...all(/\[variable ([A-Z_]+)[;\]]/g), ...all(/^ {2}([A-Z][A-Z_]+)$/gm)],
    defaults: Object.fromEntries([...defaults].map(([, flag, value]) => [flag!, value!])),
  }
}

/** What is wrong with a command line of ours: an unknown program, subcommand or flag. Empty when nothing is. */
export async function faultsOfCommand([path = '', ...words]: readonly string[]): Promise<string[]> {
  const program = path.split('/').at(-1)!
  if (!isProgram(program)) return [`${path} is no program of ours`]
  const subcommands = words.slice(0, 1).filter((word) => !word.startsWith('-'))
  const { flags } = await helpOf(program, subcommands)
  const unknown = words.filter((word) => word.startsWith('--') && !flags.includes(word.replace(/=.*/, '')))
  return unknown.map((flag) => `${program} has no ${flag}`)
}
