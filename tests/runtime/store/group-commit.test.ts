/** Group commit: one transaction a turn; a request is durable or undone, a fact gets in sooner or later. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../../../runtime/store/database.ts'
import { GroupCommit } from '../../../runtime/store/group-commit.ts'
import { silentLog } from '../../../shared/log.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

let temp: TempDir
let db: Database
let commit: GroupCommit

beforeEach(() => {
  temp = tempDir()
  db = openDatabase(temp.path)
  db.run('create table numbers (n integer primary key, bytes blob)')
  commit = new GroupCommit(db, silentLog())
})
afterEach(() => {
  emptyDisk()
  commit.flush() // ends what waits to try again
  db.close()
  temp[Symbol.dispose]()
})

const insert = (n: number) => () => {
  // Larger than what is free in any page, so that a full disk has no room for it.
  db.query('insert into numbers (n, bytes) values (?, zeroblob(20000))').run(n)
}

/** What another connection sees: that which is committed. */
function committed(): number[] {
  const other = new Database(join(temp.path, 'runtime.db'), { readonly: true })
  const rows = other.query<{ n: number }, []>('select n from numbers order by n').all()
  other.close()
  return rows.map(({ n }) => n)
}

/** SQLite then answers as it does on a full disk. */
function fillDisk(): void {
  const { page_count } = db.query<{ page_count: number }, []>('pragma page_count').get()!
  db.run(`pragma max_page_count = ${page_count}`)
}
/** What a request is rejected with. */
const refusal = (change: () => void): Promise<unknown> => commit.request(change).catch((error: unknown) => error)
const emptyDisk = () => db.run('pragma max_page_count = 1000000')

describe('a turn of the event loop', () => {
  test('is one transaction', async () => {
    const changes = [1, 2, 3].map((n) => commit.request(insert(n)))
    expect(committed()).toEqual([])
    await Promise.all(changes)
    expect(committed()).toEqual([1, 2, 3])
  })

  test('keeps the order of its changes', async () => {
    const seen: number[] = []
    await Promise.all([1, 2, 3].map((n) => commit.fact(() => void seen.push(n))))
    expect(seen).toEqual([1, 2, 3])
  })

  test('that waits for nobody shares the sync of others, and comes by itself', async () => {
    commit.unhurriedFact(insert(1))
    expect(committed()).toEqual([])
    await until(committed, (numbers) => numbers.length === 1)
    commit.unhurriedFact(insert(2))
    await commit.request(insert(3))
    expect(committed()).toEqual([1, 2, 3])
  })

  test('is written at once by a flush', () => {
    void commit.fact(insert(1))
    commit.flush()
    expect(committed()).toEqual([1])
  })
})

describe('a full disk', () => {
  test('refuses a request with 503 and undoes it', async () => {
    fillDisk()
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    expect(commit.fault).toBeDefined()
    emptyDisk()
    await commit.request(insert(2))
    expect(committed()).toEqual([2])
    expect(commit.fault).toBeUndefined()
  })

  test('keeps a fact until there is room, in its order, and says so once', async () => {
    let recovered = 0
    commit.onRecovered = () => recovered++
    fillDisk()
    const facts = [commit.fact(insert(1)), commit.fact(() => insert(2)())]
    commit.flush()
    const late = commit.fact(() => db.query('update numbers set n = n + 10').run())
    commit.flush()
    expect(committed()).toEqual([])
    emptyDisk()
    await Promise.all([...facts, late])
    expect(committed()).toEqual([11, 12])
    expect(recovered).toBe(1)
  })

  test('notices by itself that there is room again', async () => {
    fillDisk()
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    emptyDisk()
    await until(
      () => commit.fault,
      (fault) => fault === undefined,
    )
    expect(committed()).toEqual([])
  })

  test('fails a probe', async () => {
    await commit.probe()
    fillDisk()
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    emptyDisk()
    await commit.probe()
  })
})

test('a change that is wrong in itself fails alone', async () => {
  const changes = [
    commit.request(insert(1)),
    commit.request(() => void db.run('insert into nowhere values (1)')),
    commit.fact(insert(2)),
    commit.fact(insert(1)),
  ]
  const outcomes = await Promise.allSettled(changes)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  expect(committed()).toEqual([1, 2])
  expect(commit.fault).toBeUndefined()
})
