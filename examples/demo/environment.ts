/** The environment of all processes that the demo starts. */
import { bypassProxyForLoopback } from '../../shared/http/proxy.ts'

/** Our environment without the settings of taskmill in it: the demo is the same everywhere. */
export function childEnvironment(): Record<string, string> {
  const env: Record<string, string | undefined> = { ...process.env }
  for (const name of Object.keys(env)) if (name.startsWith('SERVICE_')) delete env[name]
  env.LANG = 'C.UTF-8' // sort and uniq go by it
  bypassProxyForLoopback(env)
  return env as Record<string, string>
}
