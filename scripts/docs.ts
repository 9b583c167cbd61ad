/** `bun run docs`: writes the parts of the README that come from the code. A test notices when it was forgotten. */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { controlSettings, controlVariables } from '../control/config.ts'
import { replaceSection, settingsTable } from './settings-table.ts'

const README = join(dirname(import.meta.dir), 'README.md')

/** The README as it should be. */
export function currentReadme(): string {
  const table = settingsTable(controlSettings, controlVariables)
  return replaceSection(readFileSync(README, 'utf8'), 'control settings', table)
}

if (import.meta.main) writeFileSync(README, currentReadme())
