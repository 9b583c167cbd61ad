/** `taskmill-control database check`: looks at each server of a database and tells what must be mended. */
import { lookAtDatabase } from './database-facts.ts'
import { databaseFault } from './database-fault.ts'
import { type Finding, findingsOf, type Looked, openFileFinding } from './database-findings.ts'
import type { DatabaseUrl } from './database-url.ts'

/** The object that the command prints. */
export interface DatabaseReport {
  /** No finding is an error. */
  readonly ok: boolean
  readonly servers: readonly ServerReport[]
  readonly findings: readonly Finding[]
}

/** A server that answered has all fields, another one only its address. */
interface ServerReport {
  /** The address without its password. */
  readonly url: string
  readonly role?: 'primary' | 'standby'
  readonly version?: string
  readonly is_encrypted?: boolean
  readonly is_transaction_pooled?: boolean
  readonly round_trip_ms?: number
}

/**
 * Looks at all servers at the same time, each for at most `timeoutMs` milliseconds. Changes nothing there. `openFile` has
 * passwords, and other users have rights to it.
 */
export async function checkDatabase(
  urls: readonly DatabaseUrl[],
  timeoutMs: number,
  openFile?: string,
): Promise<DatabaseReport> {
  const looked = await Promise.all(
    urls.map(
      async (url): Promise<Looked> => ({ url, facts: await lookAtDatabase(url, timeoutMs).catch(databaseFault) }),
    ),
  )
  const findings = [...(openFile === undefined ? [] : [openFileFinding(openFile)]), ...findingsOf(looked)]
  return { ok: findings.every(({ severity }) => severity === 'warning'), servers: looked.map(serverReport), findings }
}

function serverReport({ url, facts }: Looked): ServerReport {
  if (facts instanceof Error) return { url: url.shown }
  return {
    url: url.shown,
    role: facts.isStandby ? 'standby' : 'primary',
    version: facts.version,
    is_encrypted: facts.isEncrypted,
    is_transaction_pooled: facts.isTransactionPooled,
    round_trip_ms: Number(facts.roundTripMs.toFixed(2)),
  }
}
