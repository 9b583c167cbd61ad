/** The settings of a program as a Markdown table, from the table that parses them. */
import { flagName, type Settings } from '../shared/settings/flags.ts'
import { markdownTable } from './markdown-table.ts'

export function settingsTable(settings: Settings, variables: Readonly<Record<string, string>> = {}): string {
  const rows = Object.entries(settings).map(([key, { variable, value, help, range, repeatable, ...setting }]) => [
    [`--${flagName(key)}`, variable]
      .filter((name) => name !== undefined)
      .map(code)
      .join(' '),
    setting.default === undefined ? '' : code(String(setting.default)),
    [value ?? 'switch', range, repeatable && 'repeatable'].filter(Boolean).join(', '),
    help,
  ])
  for (const [variable, help] of Object.entries(variables)) rows.push([code(variable), '', '', help])
  return markdownTable(['flag, variable', 'default', 'value', 'what it does'], rows)
}

const code = (text: string | undefined) => `\`${text}\``

/** The settings that `others` does not have in the same words. */
export const settingsBeside = (settings: Settings, others: Settings): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([key, { help }]) => others[key]?.help !== help))

/** Replaces the text between the markers of `name` by `content`. Throws if the markers are missing. */
export function replaceSection(text: string, name: string, content: string): string {
  const [begin, end] = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`]
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  if (from < 0 || to < from) throw new Error(`no section ${name}`)
  return `${text.slice(0, from + begin.length)}\n${content}\n${text.slice(to)}`
}

/** The text between the markers of `name`. Throws if the markers are missing. */
export function sectionOf(text: string, name: string): string {
  const [, content] = new RegExp(`<!-- begin ${name} -->\\n([\\s\\S]*?)\\n<!-- end ${name} -->`).exec(text) ?? []
  if (content === undefined) throw new Error(`no section ${name}`)
  return content
}
