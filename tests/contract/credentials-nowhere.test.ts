/**
 * Goal: the secret that the proxy adds to requests of a task is in no process, file, environment, record, log, event, span or answer
 * of the task.
 * Method: while the task has answers that echo the secret, and waits for the rest of others, all memory of all its processes is
 * searched; after its end every byte of both data directories, and what the services answer. The same search finds a secret that
 * the task was given directly. Source: docs/sandbox.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestCertificate, testCertificate } from '../support/certificate.ts'
import { startCollector } from '../support/collector.ts'
import type { Control } from '../support/control.ts'
import { filesWith } from '../support/files-below.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { processesOfTasks, SecretSearch, searchableSecret } from '../support/secret-search.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

const why = process.getuid?.() === 0 ? missingSandbox : 'only root may read the memory of a launcher'

const [CARRIED, GIVEN] = [searchableSecret(), searchableSecret()]
const [carried, given] = [new SecretSearch(CARRIED), new SecretSearch(GIVEN)]

/** Tells what it got in every form, and cuts answers short. */
function echoServer(tls?: TestCertificate['tls']) {
  const held: (() => void)[] = []
  const got: string[] = []
  const server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, ...(tls && { tls }) },
    fetch: ({ url, headers }) => {
      const sent = [headers.get('x-token')!, decodeURIComponent(url.split('key=')[1]!.replaceAll('+', ' '))]
      const basic = headers.get('authorization')!.replace('Basic ', '')
      got.push(...sent, Buffer.from(basic, 'base64').toString().replace('user:', ''), headers.get('x-key')!)
      const told = [...sent, basic, url, JSON.stringify(Object.fromEntries(headers)), btoa(`:${sent[0]}`)].join('\n')
      if (url.includes('/v1/redirected')) return new Response(null, { status: 302, headers: { Location: url } })
      if (!url.includes('/v1/held')) return new Response(told, { headers: { 'X-Told': basic } })
      const start = async (body: ReadableStreamDefaultController<Uint8Array>) => {
        body.enqueue(Buffer.from(`${told}${'.'.repeat(100_000)}`))
        await new Promise<void>((resolve) => held.push(resolve))
        body.close()
      }
      return new Response(new ReadableStream({ start }))
    },
  })
  const release = () => {
    for (const end of held) end()
  }
  return {
    got,
    release,
    url: server.url.href,
    authority: server.url.host,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

/** Ends when the held answers do. */
const scriptFor = (urls: readonly string[]) => `
ask() { curl -sS -H "X-Key: $KEY" "$@"; }
all=$(for url in ${urls.join(' ')}; do for i in 1 2 3; do ask -i $url''v1/told; done; ask -i $url''v1/redirected; ask $url''admin; done)
for url in ${urls.join(' ')}; do n=$((n+1)); ask -N $url''v1/held > held$n & done
until test -s held1 -a -s held2; do sleep 0.02; done
echo "$all"; echo "$GIVEN" > given; echo "$GIVEN"; echo ready
wait`

const ruleFor = (host: string) => ({
  ...{ host, paths: ['/v1/*'], headers: { 'X-Token': { secret: 'carried', prefix: 'Bearer ' } } },
  ...{ basic: { user: 'user', secret: 'carried' }, query: { key: { secret: 'carried' } } },
})

const sandboxFor = (hosts: readonly string[]) => ({
  profile: 'linux_sandbox',
  network: { allow: hosts.map(ruleFor) },
})

const ENV = { NO_PROXY: '', KEY: { placeholder_for: 'carried' } }
const SECRETS = { GIVEN: { name: 'given', mask: false } }

/** Submits the task, waits until it is ready, and tells how to wait for its end. */
type Start = (pair: Pair, script: string, hosts: readonly string[]) => Promise<{ ended: () => Promise<unknown> }>

const WAYS: Record<string, Start> = {
  'by the runtime service': async ({ runtime }, script, hosts) => {
    const sandbox = sandboxFor(hosts)
    const id = await runtime.script('', {
      ...{ execution: { kind: 'script', script, env: ENV }, secrets: SECRETS, sandbox },
    })
    await runtime.printed(id, (stdout) => stdout.endsWith('ready\n'))
    return { ended: () => runtime.ended(id) }
  },
  'by control': async (pair, script, hosts) => {
    const params = { script, env: ENV, sandbox: sandboxFor(hosts) }
    await pair.control.submit([{ id: 'task', type: 'runtime.script', params, secrets: SECRETS }])
    await pair.there('task', ({ stdout }) => stdout?.endsWith('ready\n') === true)
    return { ended: () => pair.control.ended('task') }
  },
}

/** Everything that the services answer about their tasks. */
async function answersOf({ control, runtime }: Pair): Promise<string> {
  const answers: string[] = []
  const ask = async (service: Pick<Control, 'fetch'>, ...paths: readonly string[]) => {
    for (const path of paths) {
      const answer = await service.fetch(path)
      answers.push(await answer.text())
      expect([path, answer.status]).toEqual([path, 200])
    }
  }
  await ask(runtime, '/api/v1/tasks', '/api/v1/runtime/resources', '/metrics')
  for (const { task_id } of await runtime.list()) {
    const parts = ['', '/events', '/logs', '/logs?stream=stderr', '/network', '/files', '/tar', '/bundle']
    await ask(runtime, ...parts.map((part) => `/api/v1/tasks/${task_id}${part}`))
  }
  await ask(control, '/tasks', '/metrics', '/health', '/audit', '/graphs')
  for (const { id } of await control.list()) {
    await ask(
      control,
      ...['', '/logs', '/logs?stream=stderr', '/events?until=ended&after=0'].map((part) => `/tasks/${id}${part}`),
    )
  }
  return answers.join('\n')
}

test.each([
  ['as it is', GIVEN],
  ['in JSON', JSON.stringify({ a: GIVEN })],
  ['in a URL', `/?a=${encodeURIComponent(GIVEN)}`],
  ['in a form', new URLSearchParams({ a: GIVEN }).toString()],
  ...['', ':', 'me'].map((before) => [`in base64 after "${before}"`, btoa(`${before}${GIVEN}!`)] as const),
  ['in base64 for URLs', Buffer.from(GIVEN).toString('base64url')],
])('the search finds a secret %s', (_, text) => {
  expect([given.isIn(text), carried.isIn(text)]).toEqual([true, false])
})

describe.skipIf(why !== undefined)(
  `a secret for requests of a task is nowhere${why ? ` (skipped: ${why})` : ''}`,
  () => {
    let temp: TempDir
    let flags: string[]
    beforeAll(() => {
      temp = tempDir()
      const secrets = join(temp.path, 'secrets')
      mkdirSync(secrets, { mode: 0o700 })
      writeFileSync(join(secrets, 'carried'), CARRIED, { mode: 0o600 })
      writeFileSync(join(secrets, 'given'), GIVEN, { mode: 0o600 })
      flags = ['--secrets-dir', secrets, '--secrets-rules', join(temp.path, 'rules.toml')]
    })
    afterAll(() => temp[Symbol.dispose]())

    test.each(Object.entries(WAYS))('%s', async (_, start) => {
      const { tls, authorityPath } = testCertificate(temp.path)
      await using plain = echoServer()
      await using sealed = echoServer(tls)
      await using collector = startCollector()
      const hosts = [`http://${plain.authority}`, sealed.authority]
      writeFileSync(join(temp.path, 'rules.toml'), `[carried]\nhosts = ${JSON.stringify(hosts)}\n`)
      await using pair = await startPair({
        ...{ runtimeFlags: flags, runtimeEnv: { NODE_EXTRA_CA_CERTS: authorityPath } },
        controlFlags: ['--otlp-endpoint', collector.url, '--audit', 'all'],
      })
      const script = scriptFor([plain.url, sealed.url])
      const { ended } = await start(pair, script, [plain.authority, sealed.authority])

      for (const { got } of [plain, sealed]) expect(new Set(got)).toEqual(new Set([`Bearer ${CARRIED}`, CARRIED]))
      const pids = processesOfTasks(pair.runtime.process, pair.runtime.dataDir)
      expect(carried.inProcesses(pids)).toEqual([])
      expect(given.inProcesses(pids)).toEqual(
        expect.arrayContaining([
          ...['environ of curl', 'files of sh'],
          ...['curl', 'sh', 'taskmill-egress', 'taskmill-init'].map((name) => `memory of ${name}`),
          expect.stringMatching(/^memory of launcher-/),
        ]),
      )

      plain.release()
      sealed.release()
      expect(await ended()).toMatchObject({ status: 'success' })
      const told = [await answersOf(pair), JSON.stringify([pair.control.log, pair.runtime.log, collector.spans()])]
      const filesWhere = (search: SecretSearch) =>
        [pair.control, pair.runtime].flatMap(({ dataDir }) => filesWith(dataDir, (content) => search.isIn(content)))
      expect([filesWhere(carried), told.map((text) => carried.isIn(text))]).toEqual([[], [false, false]])
      expect(filesWhere(given)).toEqual(expect.arrayContaining([expect.stringMatching(/\/workspace\/given$/)]))
      expect(given.isIn(told[0]!)).toBe(true)
    })
  },
)
