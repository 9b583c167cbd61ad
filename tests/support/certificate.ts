/** A certificate for an address or a name from a certificate authority that nobody trusts. OpenSSL makes both. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface TestCertificate {
  /** What a server of `Bun.serve` needs. */
  readonly tls: { readonly cert: string; readonly key: string }
  /** The file that makes the authority trusted. */
  readonly authorityPath: string
}

/** `subject` is what the certificate is for, such as `DNS:mill.example`. */
export function testCertificate(directory: string, subject = 'IP:127.0.0.1'): TestCertificate {
  const file = (name: string) => join(directory, name)
  const openssl = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', ...args])
    if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const [authority, authorityKey, request, key, certificate] = [
    'ca.pem',
    'ca.key',
    'server.csr',
    'server.key',
    'server.pem',
  ].map(file) as [string, string, string, string, string]
  openssl('req', '-x509', ...newKey, '-keyout', authorityKey, '-out', authority, '-subj', '/CN=test', '-days', '2')
  openssl('req', ...newKey, '-keyout', key, '-out', request, '-subj', '/CN=test')
  writeFileSync(file('names'), `subjectAltName=${subject}\n`)
  const signer = ['-CA', authority, '-CAkey', authorityKey, '-CAcreateserial']
  openssl('x509', '-req', '-in', request, ...signer, '-out', certificate, '-days', '2', '-extfile', file('names'))
  return { tls: { cert: readFileSync(certificate, 'utf8'), key: readFileSync(key, 'utf8') }, authorityPath: authority }
}
