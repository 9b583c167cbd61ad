/**
 * Which of our own services a sandbox can reach that shares the network or the files of the host. Pure.
 *
 * A service without a token runs tasks of any profile for every caller that can connect. A task in `linux_sandbox` that
 * can connect to such a service can therefore leave its sandbox. So can two tasks together: one reads the token, the
 * other connects.
 */
import type { Shared } from './isolation.ts'

/** The callers that may submit tasks: every caller that can connect, or only callers with the token. */
export const ACCESS = ['open', 'token'] as const
export type Access = (typeof ACCESS)[number]

/** The same for a control service, which this service may know nothing about. */
export const CONTROL_ACCESS = ['unknown', ...ACCESS] as const

export interface ServiceAccess {
  /** Access to this service. */
  readonly runtime: Access
  /** Whether every user of the host can read the token file of this service. Default: false. */
  readonly isTokenFilePublic?: boolean
  /** Access to the control service on the same machine. */
  readonly control: (typeof CONTROL_ACCESS)[number]
}

/** A service of ours that runs tasks for callers without a token. */
export interface OpenService {
  /** The object of `it can reach`. */
  readonly name: string
  /** An imperative clause without a full stop. */
  readonly remedy: string
  /** Whether the service is known to exist and to have no token. */
  readonly isCertain: boolean
}

/**
 * Measures, besides a mount namespace, that hide the token of this service from the task, each as an imperative clause.
 * Undefined where the task cannot read the token. The network of the task does not matter: another task may connect
 * with the token that this one prints.
 */
export function tokenRemedies(
  { runtime, isTokenFilePublic = false }: ServiceAccess,
  { serviceFiles, publicFiles }: Shared,
): string[] | undefined {
  if (runtime !== 'token') return undefined
  if (serviceFiles) return []
  return publicFiles && isTokenFilePublic ? ['chmod 600 that file'] : undefined
}

/** The services that the task can use to run a task without a sandbox. */
export function openServices(
  { runtime, isTokenFilePublic = false, control }: ServiceAccess,
  shared: Shared,
): OpenService[] {
  const found: OpenService[] = []
  if (!shared.network) return found
  const remedies = tokenRemedies({ runtime, isTokenFilePublic, control }, shared)
  if (remedies !== undefined) {
    found.push({
      name: 'this service, whose token file the task can read',
      remedy: ['have sandbox.namespaces.mount true', ...remedies].join(', or '),
      isCertain: true,
    })
  }
  if (runtime === 'open') {
    found.push({
      name: 'this service, which has no token',
      remedy: 'start this service with --token-file',
      isCertain: true,
    })
  }
  if (control === 'open') {
    found.push({
      name: 'the control service of this machine, which has no token',
      remedy: 'start taskmill-control with --token-file',
      isCertain: true,
    })
  }
  if (control === 'unknown') {
    found.push({
      name: 'a control service of this machine that has no token',
      remedy: 'start taskmill-control with --token-file and this service with SERVICE_CONTROL_ACCESS=token',
      isCertain: false,
    })
  }
  return found
}

/** The services and the remedies, each as one phrase. */
export const inWords = (services: readonly OpenService[]) => ({
  names: services.map(({ name }) => name).join(', and '),
  remedies: services.map(({ remedy }) => remedy).join(', and '),
})
