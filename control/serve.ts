/**
 * Runs the service in this process. It listens before most of its modules are loaded (`listen.ts` says why), and once the lock
 * of the data directory is taken: a second service there is refused for the directory.
 */
import { claimDataDirectory } from '../shared/files/data-directory.ts'
import { LOCK_FILES } from '../shared/files/directory-lock.ts'
import { advertisedHost } from '../shared/http/advertised-url.ts'
import { listen, START_PATIENCE_MS } from '../shared/http/listen.ts'
import { bypassProxyForLoopback } from '../shared/http/proxy.ts'
import { serviceAccess } from '../shared/http/service-access.ts'
import { startService } from '../shared/process/service-process.ts'
import { StartProgress } from '../shared/process/start-progress.ts'
import type { ControlConfig } from './config.ts'

/** Undefined while the service runs, or the exit code. `startedAt` is `performance.now()` when the process began. Throws `UsageError`. */
export async function serve(config: ControlConfig, startedAt: number): Promise<number | undefined> {
  const { env } = process
  bypassProxyForLoopback(env)
  return startService('control', config, async ({ log, signals, exit }) => {
    const access = serviceAccess(
      {
        listen: { text: config.addr, setting: '--addr (SERVICE_ADDR)' },
        tokenFile: config.tokenFile,
        token: env.SERVICE_TOKEN,
        tokensFile: config.tokensFile,
        hasReplicas: hasDatabase(config),
        allowedHosts: [...config.allowedHost, ...ownNames(config)],
        sessionTtlMs: config.sessionTtl,
      },
      log,
    )
    const directory = claimDataDirectory(config.dataDir, LOCK_FILES.control)
    const progress = new StartProgress()
    const server = await listen(access.address, 'addr', START_PATIENCE_MS, progress)
    const { startControl } = await import('./service.ts')
    await startControl(config, { env, log, signals, startedAt, access, directory, server, progress, exit })
  })
}

/** Names under which other replicas reach this one. */
const ownNames = (config: ControlConfig): string[] => (hasDatabase(config) ? [advertisedHost(config.advertise)] : [])

const hasDatabase = ({ database, databaseFile }: ControlConfig): boolean => database.length > 0 || databaseFile !== ''
