/**
 * Makes the npm package of a release without executables, for programs that use only `taskmill/client` and
 * `taskmill/testing`.
 *
 *   bun scripts/package-client.ts DIRECTORY     writes DIRECTORY/npm-taskmill-VERSION.tgz
 */
import { mkdirSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { packMain } from './release/npm.ts'

const [directory] = process.argv.slice(2)
if (directory === undefined) throw new Error('usage: bun scripts/package-client.ts DIRECTORY')
const out = resolve(directory)
mkdirSync(out, { recursive: true })
console.log(relative(process.cwd(), await packMain(out, [])))
