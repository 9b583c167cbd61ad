/** Goal: what a server says after a call shows no secret of one of the last calls. */
import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_REMEMBERED_CALLS, SentToServer } from '../../../control/mcp-client/sent-to-server.ts'
import { CarriedSecrets } from '../../../control/outbound/carried-secrets.ts'
import { SecretRules } from '../../../shared/files/secret-rules.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { tempDir } from '../../support/temp.ts'

test('the secrets of the last MAX_REMEMBERED_CALLS different calls are masked', () => {
  using temp = tempDir()
  const path = join(temp.path, 'secrets')
  mkdirSync(path, { mode: 0o700 })
  const names = Array.from({ length: MAX_REMEMBERED_CALLS + 1 }, (_, i) => `secret-${i}`)
  const rules = join(temp.path, 'rules.toml')
  writeFileSync(rules, names.map((name) => `[${name}]\nhosts = ["mcp:m"]\n`).join(''), { mode: 0o644 })
  for (const name of names) writeFileSync(join(path, name), `value-of-${name}-.`, { mode: 0o600 })
  const directory = new SecretsDirectory(path, [], new SecretRules(rules, silentLog()))
  const sent = new SentToServer()
  const call = (name: string) => {
    const secrets = new CarriedSecrets(directory, 'mcp', undefined)
    secrets.textOf({ name, prefix: '', suffix: '', isMasked: true }, false)
    sent.add(secrets)
  }
  for (const name of names.slice(0, -1)) for (let i = 0; i < 2; i++) call(name)
  expect(sent.masked('value-of-secret-0-. value-of-secret-9-.')).toBe('*** ***')
  call(names.at(-1)!)
  expect(sent.masked('value-of-secret-0-. value-of-secret-9-.')).toBe('value-of-secret-0-. ***')
})
