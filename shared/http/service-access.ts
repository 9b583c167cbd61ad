/** The address and the token of a service, from its settings. */

import { UsageError } from '../contract/errors.ts'
import type { Log, LogFields } from '../logs/log.ts'
import { VERSION } from '../process/version.ts'
import { createGuard, type Guard, identifier, isLoopback } from './guard.ts'
import { KnownTokens } from './known-tokens.ts'
import { type ListenAddress, parseListenAddress } from './listen.ts'
import { Sessions } from './sessions.ts'
import { isTokenFilePublic, readToken } from './token.ts'

export interface AccessSettings {
  /** The address as written, and what sets it, for errors. */
  readonly listen: { readonly text: string; readonly setting: string }
  /** Path of the file with the token; empty for none. */
  readonly tokenFile: string
  /** The variable SERVICE_TOKEN. */
  readonly token: string | undefined
  /** Path of the file with the tokens of callers with names; empty or absent for none. */
  readonly tokensFile?: string
  /** Whether its tokens say rights only: this service knows no graphs. */
  readonly hasOnlyRights?: boolean
  /** Whether other replicas pass requests on. They know each other by the token. */
  readonly hasReplicas?: boolean
  readonly allowedHosts: readonly string[]
  /** Milliseconds for which browsers stay signed in; absent if they cannot sign in. */
  readonly sessionTtlMs?: number
  /** The path of the token file in answers to callers without a token; undefined: they are not told. */
  readonly shownTokenFile?: (address: ListenAddress) => string | undefined
}

export interface ServiceAccess {
  readonly address: ListenAddress
  readonly token: string | undefined
  readonly tokens: KnownTokens | undefined
  /** Undefined if browsers cannot sign in, or need not. */
  readonly sessions: Sessions | undefined
  /** Whether every user of this machine can read the token file. */
  readonly isTokenPublic: boolean
  readonly guard: Guard
}

const REPLICAS_NEED_TOKEN =
  '--tokens-file with --database needs --token-file (or SERVICE_TOKEN), the same for all replicas: they know each other by it'

/** Throws `UsageError`. */
export function serviceAccess(settings: AccessSettings, log: Log): ServiceAccess {
  const {
    listen,
    tokenFile,
    tokensFile = '',
    hasOnlyRights = false,
    hasReplicas = false,
    allowedHosts,
    sessionTtlMs,
    shownTokenFile,
  } = settings
  const address = parseListenAddress(listen.text, listen.setting)
  const token = readToken(tokenFile, settings.token)
  const tokens = tokensFile === '' ? undefined : new KnownTokens(tokensFile, log, { hasOnlyRights })
  if (tokens !== undefined && hasReplicas && token === undefined) throw new UsageError(REPLICAS_NEED_TOKEN)
  const isTokenPublic = isTokenFilePublic(tokenFile, log)
  const shown = shownTokenFile?.(address)
  const identify = identifier({ token, tokens })
  const sessions = identify && sessionTtlMs !== undefined ? new Sessions(identify, sessionTtlMs) : undefined
  const guard = createGuard({
    ...{ token, tokens, sessions, hasReplicas: hasReplicas && token !== undefined, allowedHosts },
    ...{ listeningHost: address.hostname, tokenFile: shown },
  })
  return { address, token, tokens, sessions, isTokenPublic, guard }
}

/** Whether callers need no token. */
export const isOpen = ({ token, tokens }: Pick<ServiceAccess, 'token' | 'tokens'>): boolean =>
  token === undefined && tokens === undefined

/** Logs that the service listens at `url`, and a warning if that lets others run tasks. */
export function announce(url: string, access: ServiceAccess, fields: LogFields, log: Log): void {
  log.info('listening', { url, version: VERSION, pid: process.pid, ...fields })
  if (!isOpen(access) || isLoopback(access.address.hostname)) return
  log.warn('listening beyond loopback without a token: whoever reaches this address can run tasks (set --token-file)')
}
