import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { AuditFiles, type AuditLog, MAX_AUDIT_FILES } from '../../../control/log/audit-log.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

let dir: TempDir
beforeEach(() => {
  dir = tempDir()
})
afterEach(() => dir[Symbol.dispose]())

const asked = (target: string) => ({ door: 'http', what: 'POST /tasks', target, trace_id: 't' }) as const

const opened = () => new AuditFiles({ dataDir: dir.path, log: memoryLog().log })

const ALL = { since: 0, before: undefined, limit: 1_000 }

const targets = async (log: AuditLog, page: Partial<typeof ALL> = {}) =>
  (await log.read({ ...ALL, ...page })).records.map(({ target, status }) => [target, status])

test('a request has its line before it is answered, and its answer after it', async () => {
  const log = opened()
  const first = log.begin(asked('/a'))
  log.begin(asked('/b'))
  expect(await targets(log)).toEqual([
    ['/b', undefined],
    ['/a', undefined],
  ])
  log.end(first, { status: 202, graph_id: 'g' })
  expect((await log.read(ALL)).records[1]).toMatchObject({ target: '/a', status: 202, graph_id: 'g' })
  expect(statSync(join(dir.path, 'audit.ndjson')).mode & 0o777).toBe(0o600)
  await log.close()
})

test('pages continue where the one before ended, over any sizes of files and pages', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 150, max: 4_000 }),
      async (count, limit, maxFileBytes) => {
        using own = tempDir()
        const log = new AuditFiles({ dataDir: own.path, log: memoryLog().log, maxFileBytes })
        for (let i = 0; i < count; i++) log.end(log.begin(asked(`/${i}`)), { status: 200 })
        const whole = await targets(log)
        const paged: unknown[] = []
        for (let before: string | undefined, hasMore = true; hasMore; ) {
          const page = await log.read({ since: 0, before, limit })
          paged.push(...page.records.map(({ target, status }) => [target, status]))
          before = page.records.at(-1)?.id
          hasMore = page.hasMore
        }
        await log.close()
        expect(paged).toEqual(whole)
        // The oldest files are gone, the newest records never.
        const newest = Array.from({ length: whole.length }, (_, i) => [`/${count - 1 - i}`, 200])
        expect(whole).toEqual(newest)
        expect(readdirSync(own.path).length).toBeLessThanOrEqual(MAX_AUDIT_FILES)
        for (const name of readdirSync(own.path))
          expect(statSync(join(own.path, name)).size).toBeLessThanOrEqual(Math.max(maxFileBytes, 200))
      },
    ),
    { numRuns: 30 },
  )
})

test('a start continues the file, also behind half a line', async () => {
  const first = opened()
  first.end(first.begin(asked('/before')), { status: 200 })
  await first.close()
  appendFileSync(join(dir.path, 'audit.ndjson'), '{"id":"torn","time":"20')
  const second = opened()
  second.end(second.begin(asked('/after')), { status: 200 })
  expect(await targets(second)).toEqual([
    ['/after', 200],
    ['/before', 200],
  ])
  await second.close()
})

test('since leaves out what is older', async () => {
  const log = opened()
  log.begin(asked('/old'))
  const [old] = (await log.read(ALL)).records
  const since = Date.parse(old!.time)
  expect(await targets(log, { since })).toEqual([['/old', undefined]])
  expect(await targets(log, { since: since + 1 })).toEqual([])
  await log.close()
})

test('a disk that refuses lines loses these, and the next line counts them', async () => {
  const { log, lines } = memoryLog()
  const audit = new AuditFiles({ dataDir: join(dir.path, 'missing'), log })
  audit.begin(asked('/lost'))
  audit.begin(asked('/lost too'))
  expect(lines().filter(({ msg }) => msg === 'the audit log cannot be written')).toHaveLength(1)
  mkdirSync(join(dir.path, 'missing'))
  audit.begin(asked('/kept'))
  expect(readFileSync(join(dir.path, 'missing', 'audit.ndjson'), 'utf8')).toStartWith('{"lost":2}\n')
  expect(await targets(audit)).toEqual([['/kept', undefined]])
  await audit.close()
})
