/**
 * The certificate authority with which the proxy ends TLS of tasks. Only sandboxes trust it.
 *
 * There are two at a time, each with its key in a file of mode 0600: `current.pem` signs, and `next.pem` takes its place after a
 * year. A task gets the certificates of both, so one that runs meanwhile trusts both. They are made at the first need, and so
 * is the library loaded that makes certificates.
 */
import { mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { type Host, hostText } from '../../shared/egress/host.ts'
import { replaceFileNow } from '../../shared/files/atomic-file.ts'

const DAY_MS = 24 * 3_600_000

/** How long an authority signs, and before that is the next one. No task runs longer. */
const TERM_MS = 366 * DAY_MS

/** How long a certificate of a host is used, and how long it is valid: from a day before, as clocks of programs may be late. */
const LEAF_USE_MS = DAY_MS
const LEAF_MS = 7 * DAY_MS

/** Certificates of hosts that are kept. Making one takes some milliseconds. */
export const MAX_KEPT_CERTIFICATES = 64

/** Where systems have the certificates that they trust. */
const HOST_ROOTS = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

const NAMES = ['current.pem', 'next.pem'] as const

/** The certificates that a task trusts: a file in its workspace. */
export const CERTIFICATES_FILE = ['.taskmill-ca.pem'] as const

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** What a TLS server needs, in PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

export class CertificateAuthority {
  readonly #directory: string
  readonly #leaves = new Map<string, { readonly certificate: Promise<Certificate>; readonly untilMs: number }>()
  #making: Promise<void> | undefined

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Makes what is missing, and rotates what has served its term. */
  prepare(): Promise<void> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined
    })
    return this.#making
  }

  /** Certificates for programs in sandboxes, in PEM: those that the host trusts, and ours. Throws unless they were made. */
  bundle(): Buffer {
    const own = NAMES.map((name) => pemIn('CERTIFICATE', this.#read(name)))
    return Buffer.from([...own, hostRoots(), ''].join('\n'))
  }

  /** A certificate for a host. */
  async certificateFor(host: Host): Promise<Certificate> {
    const name = hostText(host)
    const known = this.#leaves.get(name)
    if (known !== undefined && Date.now() < known.untilMs) return await known.certificate
    if (this.#leaves.size >= MAX_KEPT_CERTIFICATES) this.#leaves.delete(this.#leaves.keys().next().value!)
    const certificate = this.#certify(host)
    this.#leaves.set(name, { certificate, untilMs: Date.now() + LEAF_USE_MS })
    certificate.catch(() => this.#leaves.delete(name))
    return await certificate
  }

  #read(name: (typeof NAMES)[number]): string {
    return readFileSync(join(this.#directory, name), 'utf8')
  }

  async #make(): Promise<void> {
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 })
    const [current, next] = NAMES.map((name) => join(this.#directory, name)) as [string, string]
    if (isMissing(current)) replaceFileNow(current, await newAuthority(Date.now() - TERM_MS)) // it is never the next one
    if (isMissing(next)) replaceFileNow(next, await newAuthority(Date.now()))
    const { X509Certificate } = await loadX509()
    const { notBefore } = new X509Certificate(pemIn('CERTIFICATE', this.#read(NAMES[0])))
    if (Date.now() - notBefore.getTime() < 2 * TERM_MS) return
    renameSync(next, current)
    replaceFileNow(next, await newAuthority(Date.now()))
    this.#leaves.clear()
  }

  async #certify(host: Host): Promise<Certificate> {
    await this.prepare()
    const x509 = await loadX509()
    const text = this.#read(NAMES[0])
    const issuer = new x509.X509Certificate(pemIn('CERTIFICATE', text))
    const der = Buffer.from(pemIn('PRIVATE KEY', text).replace(/-----.*-----/g, ''), 'base64')
    const signingKey = await crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign'])
    const keys = await newKeys()
    const name = hostText(host)
    const certificate = await x509.X509CertificateGenerator.create({
      ...{
        serialNumber: newSerial(),
        subject: 'CN=taskmill',
        issuer: issuer.subject,
        ...valid(Date.now() - DAY_MS, LEAF_MS),
      },
      ...{ publicKey: keys.publicKey, signingKey, signingAlgorithm: ALGORITHM },
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension([{ type: 'name' in host ? 'dns' : 'ip', value: name }]),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ],
    })
    // With its issuer: without, TLS would look for that in vain, at each handshake.
    const cert = `${certificate.toString('pem')}\n${issuer.toString('pem')}\n`
    return { cert, key: await pemOf(keys.privateKey) }
  }
}

/** The library, and what it needs to be there before. */
async function loadX509() {
  await import('reflect-metadata')
  return await import('@peculiar/x509')
}

/** An authority, which is the next one for a term and signs for another: its key and its certificate, in PEM. */
async function newAuthority(fromMs: number): Promise<string> {
  const x509 = await loadX509()
  const keys = await newKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // Programs find the certificate that signed another one by its name.
    ...{
      serialNumber: newSerial(),
      name: `CN=taskmill egress ${newSerial().slice(0, 8)}`,
      ...valid(fromMs, 3 * TERM_MS),
    },
    ...{ keys, signingAlgorithm: ALGORITHM },
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return `${await pemOf(keys.privateKey)}${certificate.toString('pem')}\n`
}

const newKeys = () => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])

/** 16 bytes, positive. */
const newSerial = (): string => `4${crypto.randomUUID().replaceAll('-', '').slice(1)}`

const valid = (fromMs: number, ms: number) => ({ notBefore: new Date(fromMs), notAfter: new Date(fromMs + ms) })

async function pemOf(key: CryptoKey): Promise<string> {
  const text = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${text.replace(/.{64}/g, '$&\n').trimEnd()}\n-----END PRIVATE KEY-----\n`
}

/** The part of a PEM file. */
function pemIn(label: string, text: string): string {
  const [part] = new RegExp(`-----BEGIN ${label}-----[^-]*-----END ${label}-----`).exec(text) ?? []
  if (part === undefined) throw new Error(`a file of --egress-ca has no ${label} (remove it to have a new one made)`)
  return part
}

function isMissing(path: string): boolean {
  try {
    return readFileSync(path).length === 0
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return true
    throw error
  }
}

/** What the host trusts; without a file of it, what Bun trusts. */
function hostRoots(): string {
  for (const path of HOST_ROOTS) {
    try {
      return readFileSync(path, 'utf8')
    } catch {} // the next one
  }
  return process.getBuiltinModule('node:tls').rootCertificates.join('\n') // loading it takes milliseconds
}
