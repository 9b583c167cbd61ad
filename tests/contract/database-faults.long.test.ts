/**
 * Goal: while nothing can be kept, callers, /health and the log are told what the database says, and the replica goes on as
 * soon as that is mended. Source: docs/cluster.md, "When the database is away".
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { lockedRows } from '../support/locked-rows.ts'
import { describeReplicas } from '../support/replicas.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const AWAY = 'the database is away'
const ROLE = 'mill_of_the_test'
const END_SESSIONS = `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${ROLE}'`

/** What happens to a database, its end, and what callers are told. */
const FAULTS: readonly (readonly [fault: string, begin: readonly string[], end: readonly string[], told: RegExp])[] = [
  [
    'a disk that is full',
    [
      `create function public.full_disk() returns trigger language plpgsql as $$ begin
         raise exception 'could not extend file' using errcode = '53100'; end $$`,
      'create trigger full_disk before update on taskmill.replica execute function public.full_disk()',
    ],
    ['drop trigger full_disk on taskmill.replica'],
    /the database is full: could not extend file/,
  ],
  [
    'a database that is read-only',
    [`alter role ${ROLE} set default_transaction_read_only = on`, END_SESSIONS],
    [`alter role ${ROLE} reset default_transaction_read_only`, END_SESSIONS],
    /the database takes no writes: cannot execute .* in a read-only transaction/,
  ],
  [
    'lost rights',
    [`revoke update on taskmill.replica from ${ROLE}`],
    [`grant update on taskmill.replica to ${ROLE}`],
    /the database does not allow this: permission denied for table replica/,
  ],
  [
    'another password',
    [`alter role ${ROLE} password 'other'`, END_SESSIONS],
    [`alter role ${ROLE} password 'first'`],
    /the database refuses the password: password authentication failed/,
  ],
  [
    'a database that ends no query',
    [
      `create function public.hang() returns trigger language plpgsql as $$ begin
         perform pg_sleep(3600); return null; end $$`,
      'create trigger hang before update on taskmill.replica execute function public.hang()',
    ],
    [
      `create or replace function public.hang() returns trigger language plpgsql as $$ begin return null; end $$`,
      END_SESSIONS,
    ],
    /the database leaves queries without an answer: 3 earlier queries hang at/,
  ],
]

describeReplicas('a database that refuses turns', (newCluster) => {
  async function started(stack: AsyncDisposableStack) {
    const { server, database } = stack.use(await newCluster())
    const run = (sql: string) => server.run(sql, database)
    await run(`drop role if exists ${ROLE}`)
    await run(`create role ${ROLE} login password 'first'`)
    stack.defer(async () => {
      await run(END_SESSIONS)
      await run(`drop owned by ${ROLE}`)
      await run(`drop role ${ROLE}`)
    })
    await run(`grant all on database ${database} to ${ROLE}`)
    const url = new URL(server.url(database))
    url.username = ROLE
    url.password = 'first'
    const file = join(stack.use(tempDir()).path, 'database')
    writeFileSync(file, url.href)
    const flags = ['--database-file', file, '--lease', '6s', '--shutdown-timeout', '0s']
    return { server, database, run, control: stack.use(await startControl({ flags })) }
  }
  type Started = Awaited<ReturnType<typeof started>>

  async function isTold({ control }: Pick<Started, 'control'>, told: RegExp) {
    const submit = async () => {
      const response = await control.post({ tasks: [{ id: 'refused', type: 'os', tool_name: 'noop' }] })
      return [response.status, await response.text()] as const
    }
    await until(submit, ([status, text]) => status === 503 && told.test(text))
    const reasonNow = async () => ((await (await control.fetch('/health')).json()) as { reason?: string }).reason ?? ''
    await until(reasonNow, (reason) => told.test(reason))
    const logged = () => control.log.filter(({ msg, cause }) => msg === AWAY && told.test(String(cause))).length
    await until(logged, (lines) => lines > 0)
    expect(logged()).toBe(1)
  }

  async function isBack({ control }: Pick<Started, 'control'>) {
    await until(async () => (await control.fetch('/readyz')).status, 200)
    await control.submit([{ id: 'taken', type: 'os', tool_name: 'noop' }])
    expect(await control.stop()).toBe(0)
  }

  test.each(FAULTS)('%s is told, and passes', async (_, begin, end, told) => {
    await using stack = new AsyncDisposableStack()
    const at = await started(stack)
    for (const sql of begin) await at.run(sql)
    await isTold(at, told)
    for (const sql of end) await at.run(sql)
    await isBack(at)
  })

  test('a row that another session has locked is told, and passes', async () => {
    await using stack = new AsyncDisposableStack()
    const at = await started(stack)
    const session = stack.use(await lockedRows(at.server, at.database, 'select from taskmill.replica for update'))
    await isTold(at, /the database waits for a lock that somebody holds: canceling statement due to lock timeout/)
    await session.end()
    await isBack(at)
  })
})
