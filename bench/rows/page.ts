/** The report as Markdown, with bars in text: kept in bench/results/ by date, and quoted by the README. Pure. */
import type { Machine } from '../machine.ts'
import { goalText, machineText, noiseText, type RoundNoise, readable } from '../report.ts'
import type { Row, SectionRows, Spread } from './merged.ts'

export interface ReportPage {
  /** ISO 8601 date. */
  readonly date: string
  readonly machine: Machine
  readonly runs: number
  /** Of one run, as a median. */
  readonly minutes: number
  /** Of all rounds of all runs. */
  readonly noise: readonly RoundNoise[]
  readonly sections: readonly SectionRows[]
}

/** Rows of the table that the README quotes, by the title of their section. */
export type QuotedRows = Readonly<Record<string, readonly string[]>>

const BAR_WIDTH = 32
const SHORT_BAR_WIDTH = 10

/** Marks a row whose medians are in doubt. */
const DISTURBED = '~'

export function reportPage(page: ReportPage, quoted: QuotedRows): string {
  const { date, machine, runs, minutes, noise, sections } = page
  const rows = sections.flatMap((section) => section.rows)
  const absent = sections.flatMap((section) => section.absent)
  const failed = sections.filter((section) => section.rows.length === 0).map(({ title }) => title)
  return [
    `# How fast taskmill is, ${date}`,
    '',
    machineText(machine),
    '',
    `Medians of ${runs === 1 ? 'one run' : `${runs} runs`} of ${minutes.toFixed(1)} minutes` +
      `${runs === 1 ? '' : ', in brackets the least and the most of them'}. In a run each row is measured on all programs ` +
      'by turns, in up to three rounds. The floor is a server that does only the minimum on Bun, durably; × is the ' +
      `figure of taskmill divided by that of the floor. [bench/README.md](../README.md) has the method.`,
    '',
    `**${metText(rows)}.** ${noiseText(noise)}` +
      (rows.some(({ disturbed }) => disturbed) ? ` ${DISTURBED} marks their rows.` : ''),
    ...(absent.length === 0 ? [] : ['', `Not on this machine, so not beside it: ${absent.join('; ')}.`]),
    ...(failed.length === 0 ? [] : ['', `**Could not be measured here: ${failed.join('; ')}.**`]),
    '',
    '## In short',
    '',
    '<!-- begin quoted -->',
    ...quotedTable(sections, quoted),
    '<!-- end quoted -->',
    ...sections.flatMap(sectionText),
    '',
  ].join('\n')
}

function metText(rows: readonly Row[]): string {
  const judged = rows.filter(({ goal_met }) => goal_met !== null)
  return `${judged.filter(({ goal_met }) => goal_met).length} of ${judged.length} goals met`
}

function quotedTable(sections: readonly SectionRows[], quoted: QuotedRows): string[] {
  const rows = sections.flatMap(({ title, rows }) => rows.filter(({ key }) => quoted[title]?.includes(key)))
  return [
    `| work | taskmill | beside the floor, \`${'█'.repeat(SHORT_BAR_WIDTH)}\` | others |`,
    '| --- | ---: | --- | --- |',
    ...rows.map((row) => {
      const { label, unit, ours, ratio, peers, disturbed } = row
      const beside = ratio === null ? '–' : `\`${shortBar(row, ratio)}\` ×${readable(ratio.median)}`
      const others = peers.map(({ name, spread }) => `${name} ${readable(spread.median)} ${unit}`).join(', ')
      const figure = ours === null ? '–' : `${readable(ours.median)} ${unit}`
      return `| ${disturbed ? `${DISTURBED} ` : ''}${label} | ${figure} | ${beside} | ${others} |`
    }),
    '',
    `The report sets a goal for most rows: ${metText(sections.flatMap((section) => section.rows))}.`,
  ]
}

/** A bar of the figure of taskmill. The floor has the whole width, which a better figure may exceed. */
function shortBar({ better }: Row, ratio: Spread): string {
  const share = better === 'higher' ? ratio.median : 1 / ratio.median
  return '█'.repeat(Math.min(SHORT_BAR_WIDTH, Math.max(1, Math.round(share * SHORT_BAR_WIDTH))))
}

function sectionText({ title, rows }: SectionRows): string[] {
  if (rows.length === 0) return []
  return [
    '',
    `## ${title}`,
    '',
    '```text',
    ...rows.flatMap((row, i) => [...(i === 0 ? [] : ['']), ...rowText(row)]),
    '```',
  ]
}

export function rowText(row: Row): string[] {
  const { label, unit, better, ours, floor, ratio, peers, disturbed } = row
  const side = better === undefined ? '' : `, ${better === 'higher' ? 'more' : 'less'} is better`
  const lines = [
    ...(ours === null ? [] : [{ name: 'taskmill', spread: ours, beside: besideText(row, ratio) }]),
    ...(floor === null ? [] : [{ name: 'floor', spread: floor, beside: '' }]),
    ...peers.map((peer) => ({ ...peer, beside: '' })),
  ]
  const most = Math.max(...lines.map(({ spread }) => spread.median))
  const width = Math.max(...lines.map(({ name }) => name.length))
  return [
    `${disturbed ? `${DISTURBED} ` : ''}${label.replaceAll('`', '')}, ${unit}${side}`,
    ...lines.map(({ name, spread, beside }) =>
      `  ${name.padEnd(width)}  ${bar(spread.median / most)}  ${spreadText(spread)}${beside}`.trimEnd(),
    ),
  ]
}

const bar = (share: number): string => '█'.repeat(Math.max(1, Math.round(share * BAR_WIDTH))).padEnd(BAR_WIDTH, '·')

const spreadText = ({ median, min, max }: Spread): string =>
  min === max ? readable(median) : `${readable(median)} [${readable(min)}–${readable(max)}]`

function besideText(row: Row, ratio: Spread | null): string {
  const goal = goalText(row).replaceAll('*', '')
  return `${ratio === null ? '' : `  ×${spreadText(ratio)}`}${goal === '' ? '' : `  goal ${goal}`}`
}
