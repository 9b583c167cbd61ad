/** What is wrong with the servers of a database, from what they say about themselves. */
import { describe, expect, test } from 'bun:test'
import type { DatabaseFacts } from '../../../../control/log/postgres/database-facts.ts'
import { databaseFault, silentFault } from '../../../../control/log/postgres/database-fault.ts'
import { CONNECTIONS_PER_REPLICA, findingsOf, type Looked } from '../../../../control/log/postgres/database-findings.ts'
import { parseDatabaseUrls } from '../../../../control/log/postgres/database-url.ts'
import { SCHEMA_VERSION } from '../../../../control/log/postgres/shared-schema.ts'

const urlOf = (text: string) => parseDatabaseUrls([text], '--database')[0]!
const URL_HERE = urlOf('postgres://app@127.0.0.1/mill')

/** A primary without anything to mend. */
const WELL: DatabaseFacts = {
  ...{ versionNumber: 150_018, version: '15.18', isStandby: false, startedAt: '2026-01-01 00:00:00+00' },
  ...{ fsync: 'on', fullPageWrites: 'on', synchronousCommit: 'on', isReadOnly: false, encoding: 'UTF8', user: 'app' },
  ...{
    synchronousStandbyNames: 'b',
    synchronousStandbys: 1,
    systemIdentifier: '7',
    hasSchema: false,
    foreignTables: [],
    statementTimeoutMs: 0,
    schemaVersion: undefined,
  },
  ...{ mayCreateSchema: true, mayUseSchema: false, closedTables: [], freeConnections: 90, isEncrypted: false },
  ...{ isTransactionPooled: false, unreadableGraphs: [], roundTripMs: 0.2 },
}

const found = (looked: readonly Looked[]) => findingsOf(looked).map(({ code, severity }) => `${severity} ${code}`)
const foundIn = (change: Partial<DatabaseFacts>, url = URL_HERE) => found([{ url, facts: { ...WELL, ...change } }])

describe('one server', () => {
  test('that is well', () => {
    expect(foundIn({})).toEqual([])
    expect(foundIn({ hasSchema: true, mayUseSchema: true, mayCreateSchema: false })).toEqual([])
    expect(foundIn({ hasSchema: true, mayUseSchema: true, schemaVersion: SCHEMA_VERSION })).toEqual([])
    expect(foundIn({ versionNumber: 130_000, freeConnections: CONNECTIONS_PER_REPLICA })).toEqual([])
    expect(foundIn({ synchronousCommit: 'remote_apply' })).toEqual([])
  })

  test.each<[Partial<DatabaseFacts>, string]>([
    [{ versionNumber: 120_022, version: '12.22' }, 'error version_too_old'],
    [{ fsync: 'off' }, 'error fsync_off'],
    [{ fullPageWrites: 'off' }, 'warning full_page_writes_off'],
    [{ encoding: 'SQL_ASCII' }, 'error not_utf8'],
    [{ isTransactionPooled: true }, 'error transaction_pooler'],
    [{ isReadOnly: true }, 'error read_only'],
    [{ mayCreateSchema: false }, 'error missing_rights'],
    [{ hasSchema: true, mayUseSchema: false }, 'error missing_rights'],
    [{ hasSchema: true, mayUseSchema: true, closedTables: ['frame'] }, 'error missing_rights'],
    [{ hasSchema: true, mayUseSchema: true, schemaVersion: SCHEMA_VERSION + 1 }, 'error newer_schema'],
    [{ hasSchema: true, mayUseSchema: true, foreignTables: ['mine'] }, 'error foreign_schema'],
    [{ statementTimeoutMs: 500 }, 'warning statement_timeout'],
    [{ freeConnections: CONNECTIONS_PER_REPLICA - 1 }, 'warning few_connections'],
    [{ synchronousCommit: 'off' }, 'warning synchronous_commit_off'],
    [{ synchronousStandbyNames: '', synchronousStandbys: 0 }, 'warning no_synchronous_standby'],
    [{ synchronousStandbys: undefined }, 'warning standbys_not_visible'],
    [{ synchronousStandbys: 0 }, 'error synchronous_standby_away'],
    [{ isStandby: true }, 'error no_primary'],
  ])('%o', (change, expected) => {
    expect(foundIn(change)).toEqual([expected])
  })

  test('whose prepared statements are off may be behind a pooler', () => {
    expect(foundIn({ isTransactionPooled: true }, urlOf('postgres://app@127.0.0.1/mill?prepare=false'))).toEqual([])
  })

  test.each([
    ['postgres://app@db.example/mill', false, ['warning not_encrypted']],
    ['postgres://app@db.example/mill', true, []],
    ['postgres://app@10.1.2.3/mill', false, ['warning not_encrypted']],
    ['postgres://app@localhost/mill', false, []],
    ['postgres://app@[::1]/mill', false, []],
    ['postgres://app@h/mill?host=/run/postgresql', false, []],
  ])('%s, encrypted: %p', (url, isEncrypted, expected) => {
    expect(foundIn({ isEncrypted }, urlOf(url))).toEqual(expected)
  })

  test('a remedy is SQL that can be copied', () => {
    const url = urlOf('postgres://a%22b@127.0.0.1/mill%20db')
    const [finding] = findingsOf([{ url, facts: { ...WELL, user: 'a"b', mayCreateSchema: false } }])
    expect(finding!.remedy).toBe('grant create on database "mill db" to "a""b"')
  })
})

describe('a server that cannot be asked', () => {
  test.each([
    ['ERR_POSTGRES_CONNECTION_REFUSED', undefined, 'unreachable'],
    ['ERR_POSTGRES_CONNECTION_CLOSED', undefined, 'unreachable'],
    ['ERR_POSTGRES_SERVER_ERROR', '57P03', 'unreachable'],
    ['ERR_POSTGRES_CONNECTION_TIMEOUT', undefined, 'no_answer'],
    ['ERR_POSTGRES_SERVER_ERROR', '28P01', 'wrong_password'],
    ['ERR_POSTGRES_SERVER_ERROR', '28000', 'not_allowed'],
    ['ERR_POSTGRES_SERVER_ERROR', '3D000', 'no_database'],
    ['ERR_POSTGRES_SERVER_ERROR', '53300', 'no_connection_left'],
    ['ERR_POSTGRES_TLS_NOT_AVAILABLE', undefined, 'no_tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 0, 'untrusted_certificate'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 0, 'untrusted_certificate'],
    ['ERR_POSTGRES_SERVER_ERROR', '0A000', 'unusable'],
    [undefined, undefined, 'unusable'],
  ])('%s %s', (code, errno, expected) => {
    const fault = databaseFault(Object.assign(new Error('text'), { code, errno }))
    const findings = findingsOf([{ url: URL_HERE, facts: fault }])
    expect(findings).toEqual([expect.objectContaining({ code: expected, severity: 'error', server: URL_HERE.shown })])
    expect(findings[0]!.remedy).not.toBe('')
  })

  test('in time', () => {
    expect(found([{ url: URL_HERE, facts: silentFault(5) }])).toEqual(['error no_answer'])
  })
})

describe('several servers', () => {
  const other = urlOf('postgres://app@127.0.0.1:5433/mill')
  const standby = { ...WELL, isStandby: true, startedAt: '2026-01-02 00:00:00+00', synchronousStandbys: 0 }

  test('primary and standby are well', () => {
    expect(
      found([
        { url: URL_HERE, facts: WELL },
        { url: other, facts: standby },
      ]),
    ).toEqual([])
  })

  test('a standby whose fsync is off would be the next primary', () => {
    const findings = findingsOf([
      { url: URL_HERE, facts: WELL },
      { url: other, facts: { ...standby, fsync: 'off' } },
    ])
    expect(findings).toEqual([expect.objectContaining({ code: 'fsync_off', server: other.shown })])
  })

  test('only standbys: nobody takes writes', () => {
    expect(
      found([
        { url: URL_HERE, facts: standby },
        { url: other, facts: standby },
      ]),
    ).toEqual(['error no_primary'])
  })

  test('a standby beside a server that does not answer: that one may be the primary', () => {
    expect(
      found([
        { url: URL_HERE, facts: silentFault(5) },
        { url: other, facts: standby },
      ]),
    ).toEqual(['error no_answer'])
  })

  test('two that accept writes', () => {
    const second = { ...WELL, startedAt: standby.startedAt }
    expect(
      found([
        { url: URL_HERE, facts: WELL },
        { url: other, facts: second },
      ]),
    ).toEqual(['error two_primaries'])
    expect(
      found([
        { url: URL_HERE, facts: WELL },
        { url: other, facts: { ...second, systemIdentifier: '8' } },
      ]),
    ).toEqual(['error different_clusters'])
  })

  test('two addresses of one server', () => {
    expect(
      found([
        { url: URL_HERE, facts: WELL },
        { url: other, facts: WELL },
      ]),
    ).toEqual([])
  })
})
