/** Parts for operations that use few of them. Settings limit nothing, and the service does not stop. */
import { CallerQuotas } from '../../control/operations/caller-quotas.ts'
import type { OperationParts } from '../../control/operations/parts.ts'
import type { CommandServers } from '../../control/rules/tenant-tasks.ts'
import { silentLog } from '../../shared/logs/log.ts'

type Some<T> = { readonly [Name in keyof T]?: T[Name] | Partial<T[Name]> }
type Given = Some<Omit<OperationParts, 'keeper'>> & { readonly keeper?: Some<OperationParts['keeper']> }

/** No MCP server is a command. */
export const NO_COMMANDS: CommandServers = { hasCommands: false, isCommand: () => false }

export const operationParts = (given: Given): OperationParts =>
  ({
    ...{ unknownFields: 'refuse', log: silentLog(), stopping: new AbortController().signal },
    ...{ quotas: new CallerQuotas({ graphs: [] }, NO_COMMANDS) },
    ...{ maxFanOut: Number.POSITIVE_INFINITY, maxGraphResultBytes: Number.POSITIVE_INFINITY },
    ...given,
  }) as OperationParts
