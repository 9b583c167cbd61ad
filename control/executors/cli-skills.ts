/**
 * The category `cli-skills`: local command-line tools and skills, `{command, args, output, exit_code, truncated}`.
 *
 * A skill is an executable of the skills directory, called by its name, as `tool_name` or as `command`; whoever put it
 * there allowed it. Any other command is under the same policy as the shell tool. A skill goes before a command of its name.
 */
import { type Static, Type } from '@sinclair/typebox'
import { type CommandOptions, resultOf, runCommand } from './command.ts'
import { checkCommandInput, commandInputFields } from './command-input.ts'
import {
  type ExecutableTask,
  type Executor,
  type ExecutorContext,
  invalidInput,
  type ToolParameters,
} from './executor.ts'
import { checkCommand, type ShellPolicy } from './os/shell-policy.ts'
import { ToolParams } from './params.ts'
import type { Skill, SkillsDirectory } from './skills.ts'

/** Bytes kept of the output, both streams together. */
export const MAX_OUTPUT_BYTES = 1024 * 1024

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
    ...commandInputFields,
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

  parametersOf(): ToolParameters {
    return CLI_SKILLS
  }

  /** Whether a name is a skill takes a look at the directory, which is for the attempt. */
  checkInput(toolName: string | undefined, input: unknown): void {
    const params = cliSkillsParams.parse(input)
    const { skills, policy } = this.#options
    checkCommandInput('cli-skills', params, policy)
    const call = callOf(toolName, params)
    if (skills.mayExist) return
    if ('skill' in call) throw unknownSkill(call.skill, [])
    checkCommand(policy, call.command)
  }

  async execute({ toolName, input }: ExecutableTask, context: ExecutorContext): Promise<CliSkillsResult> {
    const params = cliSkillsParams.parse(input)
    const { args = [], dir, stdin, env } = params
    checkCommandInput('cli-skills', params, this.#options.policy)
    const { name, program } = await this.#programOf(toolName, params)
    const ended = await runCommand(
      { command: [program, ...args], dir, stdin, env, mergeStreams: true, maxStreamBytes: MAX_OUTPUT_BYTES },
      this.#options,
      context,
    )
    const { text, truncated } = ended.stdout
    return resultOf<CliSkillsResult>(ended, 'cli skill command failed', {
      ...{ command: name, args, output: text, exit_code: ended.exitCode, truncated },
    })
  }

  /** What is called, and the program that this starts. Throws `invalid_input` or `denied`. */
  async #programOf(toolName: string | undefined, params: Params): Promise<{ name: string; program: string }> {
    const { skills, policy } = this.#options
    const call = callOf(toolName, params)
    if ('skill' in call) {
      const program = await skills.find(call.skill)
      if (program === undefined) throw unknownSkill(call.skill, await skills.listSkills())
      return { name: call.skill, program }
    }
    const { command } = call
    const skill = await skills.find(command)
    if (skill === undefined) checkCommand(policy, command)
    return { name: command, program: skill ?? command }
  }
}

type Params = Static<typeof cliSkillsParams.schema>

const CLI_SKILLS: ToolParameters = { label: 'cli-skills', schema: cliSkillsParams.schema }

/** What a task calls: a skill by its name, or a command, which may be one too. Throws `invalid_input`. */
function callOf(
  toolName: string | undefined,
  { command }: Params,
): { readonly skill: string } | { readonly command: string } {
  if (toolName !== undefined && toolName !== '') {
    if (command === undefined || command === toolName) return { skill: toolName }
    throw invalidInput(`tool_name "${toolName}" and command "${command}" exclude each other`)
  }
  if (command === undefined || command.trim() === '') throw invalidInput('command is required')
  return { command }
}

/** Names of skills that an error text has; the rest are counted. */
const MAX_NAMES_IN_ERROR = 20

function unknownSkill(name: string, skills: readonly Skill[]) {
  const names = skills.map((skill) => skill.name)
  const available = names.slice(0, MAX_NAMES_IN_ERROR).join(', ') || 'none; --skills-dir says where they are'
  const more = names.length > MAX_NAMES_IN_ERROR ? ` and ${names.length - MAX_NAMES_IN_ERROR} more` : ''
  return invalidInput(`unknown skill "${name}" (available: ${available}${more})`)
}
