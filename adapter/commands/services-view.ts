/** The services that `taskmill up` started, as `up` and `status` print them. */

import { socketPathOf } from '../../shared/http/socket-address.ts'
import { runtimeLogFile } from '../../shared/logs/log-file.ts'
import { type OwnServices, ownPaths } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'
import { commandLine, thisProgram } from '../shell-words.ts'

export function servicesView(services: OwnServices, env: Environment): object {
  const { data, token, log } = ownPaths(env)
  const { url, runtime_url, pid, version, started_at, cwd, shell = 'allowlist' } = services
  const program = thisProgram(env.PATH)
  return {
    ...{ url, runtime_url, ...(socketPathOf(url) === undefined && { dashboard: `${url}/` }) },
    ...{ pid, version, started_at, cwd, shell },
    ...{ data_dir: data, token_file: token, log_files: [log, runtimeLogFile(log)] },
    agent_host: commandLine(program, 'install-mcp', '--client', 'claude', '--write'),
  }
}
