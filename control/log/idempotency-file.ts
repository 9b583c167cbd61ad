/**
 * `<data-dir>/idempotency.ndjson`: the idempotency keys as of the last snapshot, one JSON object per line, oldest
 * first.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import { nextTurn, SLICE_MS } from '../../shared/process/steps.ts'
import type { IdempotencyKeys, KeptKey } from './idempotency.ts'
import { refuseFile } from './unreadable-file.ts'

export const idempotencyPath = (dataDir: string): string => join(dataDir, 'idempotency.ndjson')

/** Characters of lines written with one call. */
const WRITE_CHARACTERS = 256 * 1024

export async function writeIdempotencyKeys(keys: IdempotencyKeys, dataDir: string): Promise<void> {
  await replaceFile(idempotencyPath(dataDir), async (file) => {
    let text = ''
    let sliceEnd = performance.now() + SLICE_MS
    for (const kept of [...keys.kept()]) {
      text += `${JSON.stringify(kept)}\n`
      if (text.length >= WRITE_CHARACTERS) {
        await file.writeFile(text)
        text = ''
      }
      if (performance.now() >= sliceEnd) {
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
    await file.writeFile(text)
  })
}

/** Throws `UsageError` when the file is unreadable. */
export function readIdempotencyKeys(dataDir: string): KeptKey[] {
  const path = idempotencyPath(dataDir)
  if (!existsSync(path)) return []
  const refuse = refuseFile('file of idempotency keys', path)
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    return lines.filter((line) => line !== '').map((line) => checked(JSON.parse(line)))
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : String(error))
  }
}

function checked(line: unknown): KeptKey {
  const { scope, key, hash, answer, at } = (line ?? {}) as Partial<KeptKey>
  const isWhole = [scope, key, hash, answer].every((part) => typeof part === 'string') && typeof at === 'number'
  if (!isWhole) throw new Error('a line is not a key with its answer')
  return line as KeptKey
}
