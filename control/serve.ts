/** Runs the service in this process. */
import type { ListenAddress } from '../shared/http/listen.ts'
import { bypassProxyForLoopback } from '../shared/http/proxy.ts'
import { startService } from '../shared/process/service-process.ts'
import type { ControlConfig } from './config.ts'
import { StartingServer } from './http/starting.ts'
import { buildParts } from './parts.ts'
import { ControlService } from './service.ts'

/** Undefined while the service runs, or the exit code. `startedAt` is `performance.now()` when the process began. Throws `UsageError`. */
export async function serve(config: ControlConfig, startedAt: number): Promise<number | undefined> {
  bypassProxyForLoopback(process.env)
  return startService('control', config, async ({ log, signals, exit }) => {
    const starting = new StartingServer()
    const onStarting = (address: ListenAddress) => starting.start(address)
    const host = { env: process.env, log, signals, startedAt, onStarting, exit }
    const { parts, earlierRun } = await buildParts(config, host).finally(() => starting.stop())
    const service = new ControlService(config, host, parts)
    process.on('uncaughtException', (error) => service.failed(error))
    process.on('unhandledRejection', (error) => service.failed(error))
    await service.start(earlierRun)
    signals.started((signal) => void service.stop(signal))
  })
}
