/**
 * The executors of tasks that run on this machine, with the settings of the service, and the environment of their
 * processes.
 */

import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import type { Log } from '../../shared/logs/log.ts'
import type { ControlConfig } from '../config.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { approval } from './approval.ts'
import { CliSkillsExecutor } from './cli-skills.ts'
import { CommandSecrets } from './command-secrets.ts'
import type { Executor } from './executor.ts'
import { dns } from './os/dns.ts'
import { file } from './os/file.ts'
import { FileRoot } from './os/file-root.ts'
import { http } from './os/http.ts'
import { noop } from './os/noop.ts'
import { OsExecutor } from './os/os.ts'
import { shell } from './os/shell.ts'
import type { ShellPolicy } from './os/shell-policy.ts'
import { sleep } from './os/sleep.ts'
import { tcp } from './os/tcp.ts'
import type { SkillsDirectory } from './skills.ts'
import { wait } from './wait.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The executors of this machine, by category. Add a custom executor to this list: docs/executors.md. */
export function localExecutors(
  config: ControlConfig,
  env: Environment,
  skills: SkillsDirectory,
  httpGuard: AddressGuard,
  directory: SecretsDirectory,
  log: Log,
): Executor[] {
  const root = new FileRoot(config.fileRoot === '' ? undefined : config.fileRoot)
  const policy = shellPolicy(env.SERVICE_SHELL_POLICY, log)
  const secrets = new CommandSecrets(directory, policy)
  const commands = { policy, secrets, killGraceMs: config.killGrace, env: taskEnvironment(env) } as const
  const requests = http(root, httpGuard, directory)
  return [
    new OsExecutor([shell(commands), file(root), requests, dns(), tcp, sleep, noop]),
    new CliSkillsExecutor({ ...commands, skills }),
    approval,
    wait(requests),
  ]
}

function shellPolicy(variable: string | undefined, log: Log): ShellPolicy {
  const asked = variable?.trim().toLowerCase() ?? ''
  if (asked === 'open') return 'open'
  if (asked !== '' && asked !== 'allowlist') {
    log.warn('SERVICE_SHELL_POLICY is neither open nor allowlist: it means allowlist')
  }
  return 'allowlist'
}

/** Variables that processes of tasks inherit: enough to find programs, and no secrets. */
export function taskEnvironment(env: Environment): Record<string, string> {
  return {
    PATH: env.PATH || '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: env.HOME || '/',
    LANG: env.LANG || 'C.UTF-8',
    TMPDIR: env.TMPDIR || '/tmp',
    USER: env.USER || 'taskmill',
  }
}
