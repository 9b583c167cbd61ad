/** Measures all rows, one section after the other, `runs` times, and writes the page of the report. */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Report } from '../report.ts'
import { median } from '../statistics.ts'
import type { Setting } from '../suite.ts'
import { control } from './control.ts'
import { sectionRows } from './merged.ts'
import { type QuotedRows, reportPage } from './page.ts'
import { runtime, sandbox } from './runtime.ts'
import type { Section } from './section.ts'
import { shell } from './shell.ts'

const SECTIONS: readonly Section[] = [control, shell, runtime, sandbox]

/** Names of all workloads of the report. */
export const ROW_WORKLOADS: readonly string[] = SECTIONS.flatMap(({ suite }) => suite.workloads)

const QUOTED: QuotedRows = {
  [control.title]: ['submit_8_rate', 'wide_1000', 'start_ready'],
  [runtime.title]: ['p50_warm'],
  [sandbox.title]: ['p50_warm'],
}

export interface MeasuredRows {
  readonly page: string
  /** All samples: a report for each section and run. */
  readonly reports: readonly Report[]
  /** Every section could be measured. */
  readonly isWhole: boolean
}

export async function measureRows(setting: Setting, runs: number): Promise<MeasuredRows> {
  const reports = new Map(SECTIONS.map((section) => [section, [] as Report[]]))
  const minutes: number[] = []
  const date = new Date().toISOString().slice(0, 10)
  const failed = new Set<Section>()
  const chosen = SECTIONS.filter(({ suite }) => suite.workloads.some((name) => setting.only.includes(name)))
  for (let run = 0; run < runs; run++) {
    const start = performance.now()
    console.error(`run ${run + 1} of ${runs}`)
    for (const section of chosen) {
      if (failed.has(section)) continue
      try {
        reports.get(section)!.push(await section.suite.run(setting))
      } catch (error) {
        // The other sections are still worth a report if this machine cannot run one.
        console.error(`${section.title} could not be measured: ${messageOf(error)}`)
        failed.add(section)
      }
    }
    minutes.push((performance.now() - start) / 60_000)
  }
  for (const section of failed) reports.set(section, [])
  const all = [...reports.values()].flat()
  const sections = chosen.map((section) => sectionRows(section.title, reports.get(section)!, section.peers))
  const noise = all.flatMap((report) => report.noise)
  const page = reportPage({ date, machine: setting.machine, runs, minutes: median(minutes), noise, sections }, QUOTED)
  return { page, reports: all, isWhole: failed.size === 0 }
}
