/**
 * Goal: the proxy adds a secret to requests of a sandboxed task, and the secret is in nothing that the task or the services have.
 * Method: the built services, a real sandbox with curl, and a server that echoes what it gets. Source: docs/sandbox.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { testCertificate } from '../support/certificate.ts'
import { filesBelow, filesWith } from '../support/files-below.ts'
import { startPair } from '../support/pair.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

const VALUE = `s3cr3t-${crypto.randomUUID()}`

let temp: TempDir
let flags: string[]
beforeAll(() => {
  temp = tempDir()
  const secrets = join(temp.path, 'secrets')
  mkdirSync(secrets, { mode: 0o700 })
  for (const name of ['api-token', 'other']) writeFileSync(join(secrets, name), `${VALUE}\n`, { mode: 0o600 })
  flags = ['--secrets-dir', secrets, '--secrets-rules', join(temp.path, 'rules.toml')]
})
afterAll(() => temp[Symbol.dispose]())

const giveTo = (host: string) =>
  writeFileSync(join(temp.path, 'rules.toml'), `[api-token]\nhosts = ["${host}"]\ntenants = ["a"]\n`, { mode: 0o644 })

/** Answers with what it got, and keeps it. */
function echoServer(tls?: { cert: string; key: string }) {
  const got: Record<string, string>[] = []
  const server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0, ...(tls && { tls }) },
    fetch: ({ headers }) => {
      got.push(Object.fromEntries(headers))
      return Response.json(Object.fromEntries(headers))
    },
  })
  return { got, url: server.url.href, authority: server.url.host, [Symbol.asyncDispose]: () => server.stop(true) }
}

const task = (authority: string, script: string, secret = 'api-token') => ({
  ...{ id: crypto.randomUUID(), type: 'runtime.script' },
  params: {
    ...{ script, env: { NO_PROXY: '', KEY: { placeholder_for: 'api-token' } }, control_context: { tenant: 'a' } },
    sandbox: {
      profile: 'linux_sandbox',
      network: {
        allow: [{ host: authority, headers: { Authorization: { secret, prefix: 'Bearer ' } }, paths: ['/v1/*'] }],
      },
    },
  },
})

describe.skipIf(missingSandbox !== undefined)(`secrets in requests of a sandbox${why}`, () => {
  test.each(['plain', 'TLS'])('reach the server, and nothing that the task or the services have: %s', async (kind) => {
    const { tls, authorityPath } = testCertificate(temp.path)
    await using server = echoServer(kind === 'TLS' ? tls : undefined)
    giveTo(server.url.slice(0, -1).replace('https://', ''))
    const runtimeEnv = { NODE_EXTRA_CA_CERTS: authorityPath }
    await using pair = await startPair({ runtimeFlags: flags, runtimeEnv })
    const script = `test -s $SSL_CERT_FILE && curl -s -H "X-Key: $KEY" ${server.url}v1/me; echo; env; curl -s ${server.url}admin; cat /proc/*/environ | tr '\\0' '\\n'`
    const asked = task(server.authority, script)
    await pair.control.submit([asked])
    const { status, result } = await pair.control.ended(asked.id)
    expect(status).toBe('success')
    const { stdout } = result as { stdout: string }
    expect(server.got).toEqual([expect.objectContaining({ authorization: `Bearer ${VALUE}`, 'x-key': VALUE })])
    expect(stdout).toContain(`"authorization":"Bearer ${'*'.repeat(VALUE.length)}"`)
    expect(stdout).toContain('GIT_SSL_CAINFO=/')
    expect(stdout).toMatch(/^KEY=taskmill-[0-9a-f]{40}$/m)
    expect(stdout).toContain(`the rule ${server.authority} does not let GET /admin pass`)
    const told = await (await pair.control.fetch(`/tasks/${asked.id}`)).text()
    expect(stdout + told + JSON.stringify([pair.control.log, pair.runtime.log])).not.toContain(VALUE)
    expect(filesBelow(pair.runtime.dataDir).filter((path) => path.endsWith('.taskmill-ca.pem'))).toEqual([])
    for (const { dataDir } of [pair.control, pair.runtime])
      expect(filesWith(dataDir, (content) => content.includes(VALUE))).toEqual([])
  })

  test('are refused, with the field and the remedy, where the operator does not give them', async () => {
    await using server = echoServer()
    giveTo('api.example.com')
    await using pair = await startPair({ runtimeFlags: flags })
    const errors = new Map([
      [
        'api-token',
        `headers.Authorization: the secret api-token is not for ${server.authority} (add that to hosts of [api-token] in `,
      ],
      ['other', 'headers.Authorization: the secret other is for processes of tasks only (give its table [other] in '],
      ['none', 'headers.Authorization: the secret none is for processes of tasks only'],
    ])
    for (const [secret, message] of errors) {
      const asked = task(server.authority, 'true', secret)
      await pair.control.submit([asked])
      expect(await pair.control.ended(asked.id)).toMatchObject({
        status: 'failed',
        runtime: {
          error: { code: 'invalid_input', message: expect.stringContaining(`sandbox.network.allow[0].${message}`) },
        },
      })
    }
    expect(server.got).toEqual([])
  })
})
