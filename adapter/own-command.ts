/** Shell commands of this client for people to paste. They reach the service that the client itself was called for. */
import { calledService } from './called-service.ts'
import { serviceUrlSetting } from './client.ts'
import { commandLine, thisProgram } from './shell-words.ts'

export interface Caller {
  readonly client: { readonly baseUrl: string }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** `line` is quoted already: a subcommand and its arguments. A token is never printed: the command refers to its variable. */
export function ownCommand(line: string, { client: { baseUrl }, env }: Caller): string {
  const { url } = calledService(env.SERVICE_URL || undefined, serviceUrlSetting.default!, env)
  const isDefault = baseUrl === url && !env.SERVICE_URL
  const token = env.SERVICE_TOKEN ? 'SERVICE_TOKEN="$SERVICE_TOKEN" ' : ''
  const address = isDefault ? '' : ` ${commandLine('--url', baseUrl)}`
  return `${token}${commandLine(thisProgram(env.PATH))} ${line}${address}`
}

const CLIENT_PREFIX = 'taskmill '

/** A command that the service suggests. It does not know how a caller reaches it. */
export const suggestedCommand = (command: string, caller: Caller): string =>
  command.startsWith(CLIENT_PREFIX) ? ownCommand(command.slice(CLIENT_PREFIX.length), caller) : command
