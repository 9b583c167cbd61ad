/**
 * What a task of a tenant may not do without the right `host`: whatever runs with the rights of a service. Pure.
 *
 * Only what is known to be fenced in is allowed, so a new type needs the right. The fields that say how far a task is fenced in
 * have to stand in it as they are: the value of a placeholder comes when nobody checks it any more.
 */
import { APPROVAL_TYPE } from '../../shared/contract/approval.ts'
import { GROUP_TYPE } from '../../shared/contract/fan-out.ts'
import { NAMESPACES } from '../../shared/contract/runtime-request.ts'
import { WAIT_TYPE } from '../../shared/contract/signal.ts'
import { isGiven, isObject } from '../../shared/text/json.ts'
import { hasPlaceholder, hasPlaceholderName } from './placeholders.ts'

export interface TenantTask {
  readonly type: string
  readonly toolName: string | undefined
  readonly input: unknown
}

/** Which MCP servers are processes of the service. */
export interface CommandServers {
  readonly hasCommands: boolean
  isCommand(name: string): boolean
}

/** Why `task` needs the right `host`, beginning with the field; undefined if it does not. */
export function whyHost({ type, toolName, input }: TenantTask, servers: CommandServers): string | undefined {
  switch (type) {
    case GROUP_TYPE: // each of its tasks is looked at
    case APPROVAL_TYPE:
    case WAIT_TYPE:
      return undefined
    case 'runtime':
      return whyUnfenced(input)
    case 'mcp':
      return servers.hasCommands ? whyCommand(toolName, input, servers) : undefined
    case 'os':
      if (toolName === 'noop' || toolName === 'sleep') return undefined
      if (toolName === 'http') return whyInFile(input)
  }
  const name = isGiven(toolName) ? `${type}.${toolName}` : type
  return `type: ${name} runs with the rights of the service (make it a runtime.command or a runtime.script ${IN_STRICT})`
}

/** Why a task may not be of another tenant than `tenant`, beginning with the field; undefined if it names no other. */
export function whyOtherTenant({ type, input }: TenantTask, tenant: string): string | undefined {
  const context = type === 'runtime' && isObject(input) ? input.control_context : undefined
  const given = isObject(context) ? context.tenant : undefined
  return isGiven(given) && given !== tenant
    ? `params.control_context.tenant: the token is of tenant ${tenant} (leave it out)`
    : undefined
}

const IN_STRICT = 'with params.sandbox.profile "linux_sandbox" and params.policy.capability_mode "strict"'

const laterText = (field: string) =>
  `${field}: a placeholder cannot say how far a task is fenced in (write the value out)`

/** Whether `input` is one of fields that stand there as they are. */
const isLater = (input: unknown): boolean => isObject(input) && hasPlaceholderName(input)

/** The runtime service may fence a task less in than `linux_sandbox` in `strict` does. */
function whyUnfenced(input: unknown): string | undefined {
  if (isLater(input)) return laterText('params')
  const { sandbox, policy } = isObject(input) ? input : {}
  if (hasPlaceholder(sandbox)) return laterText('params.sandbox')
  if (hasPlaceholder(policy)) return laterText('params.policy')
  const { profile, network, namespaces } = isObject(sandbox) ? sandbox : {}
  if (profile !== 'linux_sandbox') return 'params.sandbox.profile: any other than "linux_sandbox" isolates nothing'
  if (network === 'host')
    return 'params.sandbox.network: "host" reaches what the machine reaches (name hosts in network.allow)'
  for (const name of NAMESPACES) {
    const own = isObject(namespaces) ? namespaces[name] : undefined
    if (name !== 'cgroup' && isGiven(own) && own !== true)
      return `params.sandbox.namespaces.${name}: the task would share that with the machine (leave it out)`
  }
  if (isObject(policy) && policy.capability_mode === 'strict') return undefined
  return 'params.policy.capability_mode: any other than "strict" does without what the machine lacks'
}

/** A server that is a command runs with the rights of the service. */
function whyCommand(toolName = '', input: unknown, servers: CommandServers): string | undefined {
  if (toolName === 'poll') return undefined
  const isCall = toolName === 'call'
  const fields: Readonly<Record<string, unknown>> = isObject(input) ? input : {}
  const isParameter = isCall || toolName === 'discover'
  if (isParameter && isLater(input)) return laterText('params')
  const field = !isParameter ? 'tool_name' : isGiven(fields.server) || !isCall ? 'params.server' : 'params.tool'
  const named = field === 'tool_name' ? toolName : field === 'params.tool' ? fields.tool : fields.server
  if (isObject(named)) return laterText(field)
  const name = typeof named === 'string' ? named : ''
  const slash = name.indexOf('/')
  const server = field === 'params.server' ? name : slash < 0 ? '' : name.slice(0, slash)
  if (server === '' && name === 'echo') return undefined
  if (server === '') return `${field}: all servers would be asked, also those that are commands (name the server)`
  return servers.isCommand(server)
    ? `${field}: the server ${server} is a command with the rights of the service (use a server with a url)`
    : undefined
}

/** The file would be written with the rights of the service. */
function whyInFile(input: unknown): string | undefined {
  if (isLater(input)) return laterText('params')
  return isObject(input) && isGiven(input.save_to)
    ? 'params.save_to: the service would write the file (leave it out, or let a runtime task fetch it)'
    : undefined
}
