/** The address and the token of a service, from its settings. */

import type { Log, LogFields } from '../logs/log.ts'
import { VERSION } from '../process/version.ts'
import { createGuard, type Guard, isLoopback } from './guard.ts'
import { type ListenAddress, parseListenAddress } from './listen.ts'
import { isTokenFilePublic, readToken } from './token.ts'

export interface AccessSettings {
  /** The address as written, and what sets it, for errors. */
  readonly listen: { readonly text: string; readonly setting: string }
  /** Path of the file with the token; empty for none. */
  readonly tokenFile: string
  /** The variable SERVICE_TOKEN. */
  readonly token: string | undefined
  readonly allowedHosts: readonly string[]
  /** The path of the token file in answers to callers without a token; undefined: they are not told. */
  readonly shownTokenFile?: (address: ListenAddress) => string | undefined
}

export interface ServiceAccess {
  readonly address: ListenAddress
  readonly token: string | undefined
  /** Whether every user of this machine can read the token file. */
  readonly isTokenPublic: boolean
  readonly guard: Guard
}

/** Throws `UsageError`. */
export function serviceAccess(settings: AccessSettings, log: Log): ServiceAccess {
  const { listen, tokenFile, allowedHosts, shownTokenFile } = settings
  const address = parseListenAddress(listen.text, listen.setting)
  const token = readToken(tokenFile, settings.token)
  const isTokenPublic = isTokenFilePublic(tokenFile, log)
  const shown = shownTokenFile?.(address)
  const guard = createGuard({ token, allowedHosts, listeningHost: address.hostname, tokenFile: shown })
  return { address, token, isTokenPublic, guard }
}

/** Logs that the service listens at `url`, and a warning if that lets others run tasks. */
export function announce(url: string, { address, token }: ServiceAccess, fields: LogFields, log: Log): void {
  log.info('listening', { url, version: VERSION, pid: process.pid, ...fields })
  if (token !== undefined || isLoopback(address.hostname)) return
  log.warn('listening beyond loopback without a token: whoever reaches this address can run tasks (set --token-file)')
}
