/**
 * The category `cli-skills`: local command-line tools and skills, `{command, args, output, exit_code, truncated}`.
 *
 * A skill is an executable of the skills directory, called by its name, as `tool_name` or as `command`; whoever put it
 * there allowed it. Any other command is under the same policy as the shell tool. A skill goes before a command of its name.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type CommandOptions, resultOf, runCommand } from './command.ts'
import { type ExecutableTask, type Executor, type ExecutorContext, invalidInput } from './executor.ts'
import { checkCommand, type ShellPolicy } from './os/shell-policy.ts'
import { ToolParams } from './params.ts'
import type { SkillsDirectory } from './skills.ts'

/** Bytes kept of the output, both streams together. */
export const MAX_OUTPUT_BYTES = 1024 * 1024

/** Bytes that `stdin` may have. They are held in memory; more belongs into a file. */
export const MAX_STDIN_BYTES = 1024 * 1024

export const cliSkillsParams = new ToolParams(
  'cli-skills',
  Type.Object({
    command: Type.Optional(
      Type.String({ expected: 'string', description: 'Program: a name or a path, or the name of a skill.' }),
    ),
    args: Type.Optional(
      Type.Array(Type.String(), { expected: 'array of strings', description: 'Arguments, passed on as they are.' }),
    ),
    dir: Type.Optional(Type.String({ expected: 'string', description: 'Working directory. Default: the service’s.' })),
    stdin: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'What the program reads from its standard input. Default empty.',
      }),
    ),
  }),
)

export interface CliSkillsResult {
  /** As it was called. */
  readonly command: string
  readonly args: readonly string[]
  /** stdout and stderr in the order in which they were written. */
  readonly output: string
  /** 128 + n for death by signal n, as shells say it. */
  readonly exit_code: number
  /** There was more output than is kept. */
  readonly truncated: boolean
}

export interface CliSkillsOptions extends CommandOptions {
  readonly policy: ShellPolicy
  readonly skills: SkillsDirectory
}

export class CliSkillsExecutor implements Executor {
  readonly type = 'cli-skills'
  readonly #options: CliSkillsOptions

  constructor(options: CliSkillsOptions) {
    this.#options = options
  }

  async execute({ toolName, input }: ExecutableTask, context: ExecutorContext): Promise<CliSkillsResult> {
    const params = cliSkillsParams.parse(input)
    const { args = [], dir, stdin } = params
    checkStdin(stdin)
    const { name, program } = await this.#programOf(toolName, params)
    const ended = await runCommand(
      { command: [program, ...args], dir, stdin, mergeStreams: true, maxStreamBytes: MAX_OUTPUT_BYTES },
      this.#options,
      context,
    )
    const { text, truncated } = ended.stdout
    return resultOf<CliSkillsResult>(ended, 'cli skill command failed', {
      ...{ command: name, args, output: text, exit_code: ended.exitCode, truncated },
    })
  }

  /** What is called, and the program that this starts. Throws `invalid_input` or `denied`. */
  async #programOf(
    toolName: string | undefined,
    { command }: Static<typeof cliSkillsParams.schema>,
  ): Promise<{ name: string; program: string }> {
    const { skills, policy } = this.#options
    if (toolName !== undefined && toolName !== '') {
      if (command !== undefined && command !== toolName) {
        throw invalidInput(`tool_name "${toolName}" and command "${command}" exclude each other`)
      }
      const program = await skills.find(toolName)
      if (program === undefined) throw await unknownSkill(toolName, skills)
      return { name: toolName, program }
    }
    if (command === undefined || command.trim() === '') throw invalidInput('command is required')
    const skill = await skills.find(command)
    if (skill === undefined) checkCommand(policy, command)
    return { name: command, program: skill ?? command }
  }
}

function checkStdin(stdin: string | undefined): void {
  const bytes = stdin === undefined ? 0 : Buffer.byteLength(stdin)
  if (bytes <= MAX_STDIN_BYTES) return
  throw invalidInput(
    `parse cli-skills params: stdin: expected at most ${MAX_STDIN_BYTES} bytes, got ${bytes}; put more into a file`,
  )
}

/** Names of skills that an error text has; the rest are counted. */
const MAX_NAMES_IN_ERROR = 20

async function unknownSkill(name: string, skills: SkillsDirectory) {
  const names = (await skills.listSkills()).map((skill) => skill.name)
  const available = names.slice(0, MAX_NAMES_IN_ERROR).join(', ') || 'none; --skills-dir says where they are'
  const more = names.length > MAX_NAMES_IN_ERROR ? ` and ${names.length - MAX_NAMES_IN_ERROR} more` : ''
  return invalidInput(`unknown skill "${name}" (available: ${available}${more})`)
}
