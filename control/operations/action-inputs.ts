/** The input schema of each kind of action, taken from its executor. */
import type { InputSchemas } from '../adapter-v1/input-check.ts'
import { mcpCallInput, taskGraphInput } from '../adapter-v1/inputs.ts'
import { runtimeCommandInput, runtimeScriptInput } from '../adapter-v1/runtime-request.ts'
import { cliSkillsParams } from '../executors/cli-skills.ts'
import { dnsParams } from '../executors/os/dns.ts'
import { fileParams } from '../executors/os/file.ts'
import { httpParams } from '../executors/os/http.ts'
import { noopParams } from '../executors/os/noop.ts'
import { shellParams } from '../executors/os/shell.ts'
import { sleepParams } from '../executors/os/sleep.ts'
import { tcpParams } from '../executors/os/tcp.ts'

export const actionInputs: InputSchemas = {
  'os.shell': shellParams.schema,
  'os.file': fileParams.schema,
  'os.http': httpParams.schema,
  'os.dns': dnsParams.schema,
  'os.tcp': tcpParams.schema,
  'os.sleep': sleepParams.schema,
  'os.noop': noopParams.schema,
  'runtime.command': runtimeCommandInput,
  'runtime.script': runtimeScriptInput,
  'mcp.call': mcpCallInput,
  'cli.run': cliSkillsParams.schema,
  'task_graph.submit': taskGraphInput,
}
