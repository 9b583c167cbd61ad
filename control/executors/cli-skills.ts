/**
 * The category `cli-skills`: local command-line tools and skills, `{command, args, output, exit_code, truncated}`.
 *
 * A skill is an executable in the skills directory. A task names it in `tool_name` or `command`. Skills bypass the
 * allowlist; any other command is under the policy of the shell tool. If a skill and a command have the same name, the
 * skill runs.
 */
import type { Static } from '@sinclair/typebox'
import { Type } from '../../shared/contract/schema-builder.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import { type CommandOptions, resultOf, runCommand } from './command.ts'
import { checkCommandInput, commandInputFields } from './command-input.ts'
import type { CommandSecrets } from './command-secrets.ts'
import {
  type ExecutableTask,
  type Executor,
  type ExecutorContext,
  invalidInput,
  type SecretTaking,
  type ToolParameters,
} from './executor.ts'
import { checkCommand, type ShellPolicy } from './os/shell-policy.ts'
import { ToolParams } from './params.ts'
import type { Skill, SkillsDirectory } from './skills.ts'

/** Bytes of output that are kept, stdout and stderr together. */
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
  /** The command as the task named it. */
  readonly command: string
  readonly args: readonly string[]
  /** stdout and stderr in the order in which they were written. */
  readonly output: string
  /** 128 + n if signal n killed the process, as in shells. */
  readonly exit_code: number
  /** Whether output was cut off. */
  readonly truncated: boolean
}

export interface CliSkillsOptions extends CommandOptions {
  readonly policy: ShellPolicy
  readonly secrets: CommandSecrets
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

  secretsOf(): SecretTaking {
    return this.#options.secrets.taking
  }

  /** With a skills directory, leaves the check of the name to the attempt, which reads the directory. */
  checkInput(toolName: string | undefined, input: unknown, given?: SecretNames): void {
    const params = cliSkillsParams.parse(input)
    const { skills, policy, secrets } = this.#options
    checkCommandInput('cli-skills', params, policy)
    if (given !== undefined) secrets.check(given)
    const call = callOf(toolName, params)
    if (skills.mayExist) return
    if ('skill' in call) throw unknownSkill(call.skill, [])
    checkCommand(policy, call.command)
  }

  async execute({ toolName, input, secrets }: ExecutableTask, context: ExecutorContext): Promise<CliSkillsResult> {
    const params = cliSkillsParams.parse(input)
    const { args = [], dir, stdin } = params
    checkCommandInput('cli-skills', params, this.#options.policy)
    const { name, program } = await this.#programOf(toolName, params)
    const variables = await this.#options.secrets.variables('cli-skills', secrets, params.env, context)
    const ended = await runCommand(
      { command: [program, ...args], dir, stdin, ...variables, mergeStreams: true, maxStreamBytes: MAX_OUTPUT_BYTES },
      this.#options,
      context,
    )
    const { text, truncated } = ended.stdout
    return resultOf<CliSkillsResult>(ended, 'cli skill command failed', {
      ...{ command: name, args, output: text, exit_code: ended.exitCode, truncated },
    })
  }

  /** The command as named, and the program to start. Throws `invalid_input` or `denied`. */
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

/** The name that a task calls: its tool name, or its command, which may also name a skill. Throws `invalid_input`. */
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

/** Maximum number of skill names in an error message. */
const MAX_NAMES_IN_ERROR = 20

function unknownSkill(name: string, skills: readonly Skill[]) {
  const names = skills.map((skill) => skill.name)
  const available = names.slice(0, MAX_NAMES_IN_ERROR).join(', ') || 'none; --skills-dir says where they are'
  const more = names.length > MAX_NAMES_IN_ERROR ? ` and ${names.length - MAX_NAMES_IN_ERROR} more` : ''
  return invalidInput(`unknown skill "${name}" (available: ${available}${more})`)
}
