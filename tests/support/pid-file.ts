/** Reads a pid that a process under test writes into a file. */
import { existsSync, readFileSync } from 'node:fs'
import { until } from './until.ts'

/** The pid in the file at `path`, once its line is there and whole. */
export async function pidFrom(path: string): Promise<number> {
  const text = await until(
    () => (existsSync(path) ? readFileSync(path, 'utf8') : ''),
    (read) => read.endsWith('\n'),
  )
  return Number(text)
}
