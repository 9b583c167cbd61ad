/** The certificate authority of sandboxes: OpenSSL and Python trust what it signs, and it is rotated before it ends. */
import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CertificateAuthority, MAX_KEPT_CERTIFICATES } from '../../../runtime/egress/authority.ts'
import { hostOf } from '../../../shared/egress/host.ts'
import { tempDir } from '../../support/temp.ts'

const YEAR_MS = 367 * 24 * 3_600_000

afterEach(() => void setSystemTime())

const parts = (pem: string) => pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g)!

/** What OpenSSL says of a certificate for `name`. */
function verified(dir: string, bundle: Buffer, cert: string, ...name: string[]): string {
  const [authorities, leaf] = [join(dir, 'bundle.pem'), join(dir, 'leaf.pem')]
  writeFileSync(authorities, bundle)
  writeFileSync(leaf, cert)
  const command = ['openssl', 'verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', authorities, ...name, leaf]
  const { stdout, stderr } = Bun.spawnSync(command)
  return `${stdout}${stderr}`
}

test('signs for names and addresses, and keeps its keys private', async () => {
  using temp = tempDir()
  const path = join(temp.path, 'ca')
  const authority = new CertificateAuthority(path)
  expect(() => authority.bundle()).toThrow('ENOENT')
  await Promise.all([authority.prepare(), authority.prepare()])
  const { cert } = await authority.certificateFor(hostOf('api.example')!)
  const bundle = authority.bundle()
  expect(verified(temp.path, bundle, cert, '-verify_hostname', 'api.example')).toEndWith(': OK\n')
  expect(verified(temp.path, bundle, cert, '-verify_hostname', 'other.example')).toContain('hostname mismatch')
  const ofAddress = await authority.certificateFor(hostOf('127.0.0.1')!)
  expect(verified(temp.path, bundle, ofAddress.cert, '-verify_ip', '127.0.0.1')).toEndWith(': OK\n')
  expect(readdirSync(path).sort()).toEqual(['current.pem', 'next.pem'])
  for (const name of readdirSync(path)) expect(statSync(join(path, name)).mode & 0o777).toBe(0o600)
  expect(bundle.toString()).not.toContain('PRIVATE KEY')
  // The next service goes on with it.
  const again = await new CertificateAuthority(path).certificateFor(hostOf('api.example')!)
  expect(verified(temp.path, bundle, again.cert)).toEndWith(': OK\n')
})

test('what a task trusts before a rotation signs after it', async () => {
  using temp = tempDir()
  const authority = new CertificateAuthority(join(temp.path, 'ca'))
  await authority.prepare()
  const before = authority.bundle()
  const host = hostOf('api.example')!
  const old = await authority.certificateFor(host)
  expect(await authority.certificateFor(host)).toBe(old)
  setSystemTime(Date.now() + YEAR_MS)
  await authority.prepare()
  const [first, second] = [before, authority.bundle()].map((bundle) => parts(bundle.toString()).slice(0, 2)) as [
    string[],
    string[],
  ]
  expect(second[0]).toBe(first[1]!)
  expect(first).not.toContain(second[1])
  const fresh = await authority.certificateFor(host)
  expect(fresh.cert).not.toBe(old.cert)
  setSystemTime()
  expect(verified(temp.path, Buffer.from(first.join('\n')), fresh.cert)).not.toContain('unable to get')
})

test('keeps MAX_KEPT_CERTIFICATES', async () => {
  using temp = tempDir()
  const authority = new CertificateAuthority(temp.path)
  const of = (i: number) => authority.certificateFor(hostOf(`h${i}.example`)!)
  const first = await of(0)
  for (let i = 1; i < MAX_KEPT_CERTIFICATES; i++) await of(i)
  expect(await of(0)).toBe(first)
  await of(MAX_KEPT_CERTIFICATES)
  expect(await of(0)).not.toBe(first)
})

test('a file that is none of its own has a remedy', async () => {
  using temp = tempDir()
  writeFileSync(join(temp.path, 'current.pem'), 'x')
  const message = 'a file of --egress-ca has no CERTIFICATE (remove it to have a new one made)'
  expect(new CertificateAuthority(temp.path).prepare()).rejects.toThrow(message)
})
