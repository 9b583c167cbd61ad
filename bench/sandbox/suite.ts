/** What the report says nothing of: networks of sandboxes. */
import type { Lifetime } from '../lifetime.ts'
import { commandTarget, copiedProgram, quoted, type ServerTarget } from '../server.ts'
import { suiteOf } from '../suite.ts'
import { network } from './network.ts'
import { OPENED_FILES } from './opened.ts'

export const sandbox = suiteOf({
  name: 'sandbox',
  full: { warmUpTasks: 100, singleTasks: 100, rateTasks: 400, sliceMs: 1_000, streamMegabytes: 512 },
  quick: { warmUpTasks: 5, singleTasks: 10, rateTasks: 20, sliceMs: 500, streamMegabytes: 8 },
  roundsMs: 60_000,
  prepare: async (_config, lifetime) => [await ourServer(lifetime)],
  isClosed: true,
  workloads: [network],
})

async function ourServer(lifetime: Lifetime): Promise<ServerTarget> {
  const program = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const { authority, rules, secrets } = OPENED_FILES
  const opened = `--secrets-dir {dir}/${secrets} --secrets-rules {dir}/${rules}`
  const serve = `env NODE_EXTRA_CA_CERTS={dir}/${authority} ${program} serve ${opened} --listen-addr 127.0.0.1:{port} --data-dir {dir} --max-running-tasks {slots}`
  const kind = { healthPath: '/healthz', fill: { slots: '4' } }
  return commandTarget('taskmill', `${serve} --max-queued-tasks 20000`, kind, lifetime)
}
