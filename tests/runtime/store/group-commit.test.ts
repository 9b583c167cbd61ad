/** Group commit: one transaction a turn; a request is durable or undone, a fact gets in sooner or later. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { databasePath, openDatabase } from '../../../runtime/store/database.ts'
import { GroupCommit, type Sync } from '../../../runtime/store/group-commit.ts'
import { WalSync } from '../../../runtime/store/wal-sync.ts'
import { DataDirectoryLost } from '../../../shared/files/held-directory.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { HELD, NO_RESERVE } from '../../support/held.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

let temp: TempDir
let db: Database
let commit: GroupCommit

beforeEach(() => {
  temp = tempDir()
  db = openDatabase(temp.path)
  db.run('create table numbers (n integer primary key, bytes blob)')
  commit = new GroupCommit({
    db,
    sync: new WalSync(databasePath(temp.path)),
    directory: HELD,
    reserve: NO_RESERVE,
    log: silentLog(),
  })
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
const request = (change: () => void, undo = () => {}): Promise<void> => commit.request(change, undo)
/** What a request is rejected with. */
const refusal = (change: () => void): Promise<unknown> => request(change).catch((error: unknown) => error)
/** Returns how often the disk has taken writes again since this call. */
function countRecoveries(): () => number {
  let recoveries = 0
  const count = async (): Promise<void> => {
    await commit.recovered
    recoveries++
    return await count()
  }
  void count()
  return () => recoveries
}
const emptyDisk = () => db.run('pragma max_page_count = 1000000')

describe('a turn of the event loop', () => {
  test('is one transaction', async () => {
    const changes = [1, 2, 3].map((n) => request(insert(n)))
    expect(committed()).toEqual([])
    await Promise.all(changes)
    expect(committed()).toEqual([1, 2, 3])
  })

  test('keeps the order of its changes', async () => {
    const seen: number[] = []
    await Promise.all([1, 2, 3].map((n) => commit.fact(() => void seen.push(n))))
    expect(seen).toEqual([1, 2, 3])
  })

  test('for which nobody waits comes by itself, and keeps others not waiting', async () => {
    const before = performance.now()
    commit.unhurriedFact(insert(1))
    let seen: number[] = []
    const meanwhile = () => {
      // Such facts are held back for 20 ms, which a busy machine may take to come here.
      seen = performance.now() - before < 15 ? committed() : [2]
    }
    await commit.fact(insert(2), { meanwhile })
    expect(seen).toEqual([2])
    await until(committed, (numbers) => numbers.length === 2)
  })

  test('for which nobody waits is left out when it is moot by then', async () => {
    let isMoot = false
    commit.unhurriedFact(insert(1), () => isMoot)
    commit.unhurriedFact(insert(2), () => false)
    isMoot = true
    commit.flush()
    expect(committed()).toEqual([2])
  })

  test('is written at once by a flush', () => {
    void commit.fact(insert(1))
    commit.flush()
    expect(committed()).toEqual([1])
  })
})

describe('a lost data directory', () => {
  /** Lost after so many looks. */
  const lostAfter = (looks: number) => {
    const lost = new DataDirectoryLost('the directory was replaced')
    let left = looks
    const directory = {
      look: () => (left-- > 0 ? undefined : lost),
      get lost() {
        return left >= 0 ? undefined : lost
      },
    }
    commit = new GroupCommit({
      db,
      sync: new WalSync(databasePath(temp.path)),
      directory,
      reserve: NO_RESERVE,
      log: silentLog(),
    })
    return lost
  }
  const remove = (n: number) => () => void db.query('delete from numbers where n = ?').run(n)

  test('has requests refused and facts wait, and is the fault from then on', async () => {
    const lost = lostAfter(0)
    let isFactIn = false
    void commit.fact(insert(1)).then(() => {
      isFactIn = true
    })
    expect(await refusal(insert(2))).toMatchObject({ status: 503, message: 'the directory was replaced' })
    commit.settle()
    expect([commit.fault, committed(), isFactIn]).toEqual([lost, [], false])
  })

  test('that is lost before the answer has what was committed taken back', async () => {
    lostAfter(1)
    let isUndone = false
    const refused = commit.request(insert(1), remove(1), {
      undone: () => {
        isUndone = true
      },
    })
    expect(await refused.catch((error: unknown) => error)).toMatchObject({ status: 503 })
    expect([committed(), isUndone]).toEqual([[], false])
  })
})

describe('a full disk', () => {
  test('refuses a request with 503 and undoes it', async () => {
    fillDisk()
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    expect(commit.fault).toBeDefined()
    emptyDisk()
    await request(insert(2))
    expect(committed()).toEqual([2])
    expect(commit.fault).toBeUndefined()
  })

  test('keeps a fact until there is room, in its order, and says so once', async () => {
    const recovered = countRecoveries()
    fillDisk()
    const facts = [commit.fact(insert(1)), commit.fact(() => insert(2)())]
    commit.flush()
    const late = commit.fact(() => db.query('update numbers set n = n + 10').run())
    commit.flush()
    expect(committed()).toEqual([])
    emptyDisk()
    await Promise.all([...facts, late])
    expect(committed()).toEqual([11, 12])
    expect(recovered()).toBe(1)
  })

  test('is not over because a sync succeeds that was under way', async () => {
    const sync = new HeldSync()
    commit = new GroupCommit({ db, sync, directory: HELD, reserve: NO_RESERVE, log: silentLog() })
    const recovered = countRecoveries()
    const early = commit.fact(insert(1))
    commit.flush()
    fillDisk()
    const late = commit.fact(insert(2))
    commit.flush()
    sync.end()
    await early
    expect([recovered(), commit.fault === undefined]).toEqual([0, false])
    emptyDisk()
    commit.flush()
    sync.end()
    await late
    expect([recovered(), commit.fault]).toEqual([1, undefined])
  })

  test('keeps facts in their order although one among them is wrong in itself', async () => {
    fillDisk()
    const wrong = commit.fact(() => void db.run('insert into nowhere values (1)')).catch(() => 'wrong')
    const facts = [insert(1), insert(2), () => void db.run('update numbers set n = n + 10')].map((fact) =>
      commit.fact(fact),
    )
    expect(await wrong).toBe('wrong')
    emptyDisk()
    await Promise.all(facts)
    expect(committed()).toEqual([11, 12])
  })

  test('has nothing done on what is not committed', async () => {
    const done: string[] = []
    fillDisk()
    const fact = commit.fact(insert(2), { meanwhile: () => done.push('fact') })
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    expect(done).toEqual([])
    emptyDisk()
    await fact
    expect(done).toEqual(['fact'])
  })

  test('notices by itself that there is room again', async () => {
    fillDisk()
    expect(await refusal(insert(1))).toMatchObject({ status: 503 })
    emptyDisk()
    await until(() => commit.fault === undefined)
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

/** A disk whose syncs are ours to let succeed or fail. */
class HeldSync implements Sync {
  readonly #waiting: PromiseWithResolvers<void>[] = []
  isBroken = false
  later(): Promise<void> {
    const held = Promise.withResolvers<void>()
    this.#waiting.push(held)
    return held.promise
  }
  now(): void {
    if (this.isBroken) throw new Error('EIO')
  }
  get count(): number {
    return this.#waiting.length
  }
  end(): void {
    const held = this.#waiting.shift()!
    if (this.isBroken) held.reject(new Error('EIO'))
    else held.resolve()
  }
}

describe('a sync', () => {
  const held = () => {
    const sync = new HeldSync()
    commit = new GroupCommit({ db, sync, directory: HELD, reserve: NO_RESERVE, log: silentLog() })
    const ended: string[] = []
    const note = (name: string, promise: Promise<void>) => {
      promise.then(
        () => ended.push(name),
        (error) => ended.push(`${name} ${error.status}`),
      )
    }
    const turn = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))
    return { sync, ended, note, turn }
  }
  const remove = (n: number) => () => void db.query('delete from numbers where n = ?').run(n)

  test('is waited for, and all that changes meanwhile shares a transaction and the next one', async () => {
    const { sync, ended, note, turn } = held()
    note('1', request(insert(1)))
    await turn()
    expect([committed(), ended, sync.count]).toEqual([[1], [], 1])
    note('2', request(insert(2)))
    await turn()
    note('3', commit.fact(insert(3)))
    await turn()
    expect([committed(), ended, sync.count]).toEqual([[1], [], 1])
    sync.end()
    await turn()
    expect([committed(), ended, sync.count]).toEqual([[1, 2, 3], ['1'], 1])
    sync.end()
    await turn()
    expect([ended, sync.count]).toEqual([['1', '2', '3'], 0])
  })

  test('leaves time for work on what is committed, before anybody is told', async () => {
    const { sync, ended, note, turn } = held()
    const done: [string, number[]][] = []
    note('1', commit.fact(insert(1), { meanwhile: () => done.push(['1', committed()]) }))
    note('2', commit.fact(insert(2), { meanwhile: () => done.push(['2', committed()]) }))
    expect(done).toEqual([])
    await turn()
    const both: [string, number[]][] = [
      ['1', [1, 2]],
      ['2', [1, 2]],
    ]
    expect([done, ended, sync.count]).toEqual([both, [], 1])
    sync.end()
    await turn()
    expect([done, ended]).toEqual([both, ['1', '2']])
  })

  test('comes at once where somebody is to be told', async () => {
    const { sync, ended, note, turn } = held()
    note('1', request(insert(1)))
    await turn()
    note('2', request(insert(2)))
    commit.settle()
    await turn()
    expect([committed(), ended]).toEqual([[1, 2], ['2']])
    sync.end()
    await turn()
    expect(ended).toEqual(['2', '1'])
  })

  test('that fails refuses and takes back requests, and keeps facts, once they are elsewhere', async () => {
    const { sync, ended, note, turn } = held()
    note('1', request(insert(1), remove(1)))
    note('2', commit.fact(insert(2)))
    await turn()
    note('3', request(insert(3), remove(3)))
    await turn()
    sync.isBroken = true
    sync.end()
    await turn()
    // The log was moved into the database, which went well: nothing is at fault any more.
    expect(ended).toEqual(['1 503', '2', '3'])
    expect([committed(), commit.fault, sync.count]).toEqual([[2, 3], undefined, 0])
    sync.isBroken = false
    note('4', request(insert(4)))
    await turn()
    sync.end()
    await turn()
    expect(ended.at(-1)).toBe('4')
  })

  test('that fails while the log cannot be moved is a fault until it can', async () => {
    const { sync, ended, note, turn } = held()
    note('1', commit.fact(insert(1)))
    await turn()
    // A reader of an old state keeps SQLite from beginning its log anew.
    const reader = new Database(join(temp.path, 'runtime.db'), { readonly: true })
    reader.run('begin')
    reader.query('select count(*) from numbers').get()
    db.run('pragma busy_timeout = 0')
    note('2', commit.fact(insert(2)))
    await turn()
    sync.isBroken = true
    sync.end()
    await turn()
    expect(ended).toEqual([])
    expect(commit.fault).toBeDefined()
    expect(await refusal(insert(3))).toMatchObject({ status: 503 })
    reader.run('commit')
    reader.close()
    await until(() => ended.length, 2)
    expect([ended, commit.fault]).toEqual([['1', '2'], undefined])
  })

  test('that fails while the log cannot be moved leaves nothing of a request that is refused then', async () => {
    const { sync, ended, note, turn } = held()
    const reader = new Database(join(temp.path, 'runtime.db'), { readonly: true })
    reader.run('begin')
    reader.query('select count(*) from numbers').get()
    db.run('pragma busy_timeout = 0')
    note('1', request(insert(1), remove(1)))
    await turn()
    sync.isBroken = true
    sync.end()
    await turn()
    note('2', request(insert(2), remove(2)))
    note('3', commit.fact(insert(3)))
    await turn()
    expect(ended).toEqual(['1 503', '2 503'])
    // Also for a service that is killed now.
    expect(committed()).toEqual([3])
    reader.run('commit')
    reader.close()
    await until(() => ended.length, 3)
    expect([committed(), commit.fault]).toEqual([[3], undefined])
  })

  test('that failed is not believed when another one succeeds, before the log was moved', async () => {
    const { sync, ended, note, turn } = held()
    const reader = new Database(join(temp.path, 'runtime.db'), { readonly: true })
    reader.run('begin')
    reader.query('select count(*) from numbers').get()
    db.run('pragma busy_timeout = 0')
    note('1', commit.fact(insert(1)))
    await turn()
    sync.isBroken = true
    sync.end()
    await turn()
    sync.isBroken = false
    commit.settle()
    await turn()
    expect(ended).toEqual([])
    expect(commit.fault).toBeDefined()
    reader.run('commit')
    reader.close()
    commit.settle()
    await turn()
    expect([ended, commit.fault]).toEqual([['1'], undefined])
  })

  test('at once that fails does the same', async () => {
    const { sync, ended, note, turn } = held()
    sync.isBroken = true
    note('1', request(insert(1), remove(1)))
    note('2', commit.fact(insert(2)))
    commit.flush()
    note('3', request(insert(3), remove(3)))
    commit.settle()
    await turn()
    expect(ended).toEqual(['3 503'])
    sync.end()
    await turn()
    expect(ended).toEqual(['3 503', '1 503', '2'])
    expect(committed()).toEqual([2])
  })
})

test('a change that is wrong in itself fails alone', async () => {
  const changes = [
    request(insert(1)),
    request(() => void db.run('insert into nowhere values (1)')),
    commit.fact(insert(2)),
    commit.fact(insert(1)),
  ]
  const outcomes = await Promise.allSettled(changes)
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  expect(committed()).toEqual([1, 2])
  expect(commit.fault).toBeUndefined()
})

test.each(['SQLITE_FULL', 'SQLITE_CORRUPT', 'SQLITE_NOTADB', 'SQLITE_PROTOCOL', 'SQLITE_IOERR_WRITE'])(
  'a fact that meets %s is kept until it is in',
  async (code) => {
    let isBroken = true
    const fact = commit.fact(() => {
      if (isBroken) throw Object.assign(new Error('the disk says no'), { code })
      insert(1)()
    })
    commit.flush()
    expect(commit.fault).toMatchObject({ code })
    isBroken = false
    await fact
    expect([committed(), commit.fault]).toEqual([[1], undefined])
  },
)

test('a fact that meets a damaged page holds up no others, and is not lost', async () => {
  let isDamaged = true
  const fact = commit.fact(() => {
    if (isDamaged) throw Object.assign(new Error('the page is damaged'), { code: 'SQLITE_CORRUPT' })
    insert(1)()
  })
  await Promise.all([commit.fact(insert(2)), request(insert(3))])
  await commit.fact(insert(4))
  expect(committed()).toEqual([2, 3, 4])
  expect(commit.fault).toMatchObject({ code: 'SQLITE_CORRUPT' })
  isDamaged = false
  commit.flush()
  await fact
  expect([committed(), commit.fault]).toEqual([[1, 2, 3, 4], undefined])
})
