/** The settings of a program as a Markdown list, from the table that parses them. */
import { flagName, type Settings } from '../shared/settings/flags.ts'

export function settingsList(settings: Settings, variables: Readonly<Record<string, string>> = {}): string {
  const flags = Object.entries(settings).map(([key, { variable, value, help, range, repeatable, ...setting }]) => {
    const names = [`--${flagName(key)}`, variable].filter((name) => name !== undefined).map(code)
    const initial = setting.default === undefined ? undefined : `default ${code(String(setting.default))}`
    const form = [value ?? 'switch', range, repeatable && 'repeatable', initial].filter(Boolean)
    return `- ${names.join(', ')} (${form.join(', ')}). ${help}`
  })
  return [...flags, ...Object.entries(variables).map(([variable, help]) => `- ${code(variable)}. ${help}`)].join('\n')
}

const code = (text: string | undefined) => `\`${text}\``

/** The settings that `others` does not have in the same words. */
export const settingsBeside = (settings: Settings, others: Settings): Settings =>
  Object.fromEntries(Object.entries(settings).filter(([key, setting]) => !isSame(setting, others[key])))

const isSame = (one: Settings[string], other: Settings[string] | undefined) =>
  one.help === other?.help && one.default === other.default && one.variable === other.variable

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
