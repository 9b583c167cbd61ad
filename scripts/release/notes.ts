/** Release notes: the section of one version in CHANGELOG.md. Pure. */

const isHeading = (line: string): boolean => line.startsWith('## ')

/** The text below `## <version>`, without the heading. Throws if there is none. */
export function releaseNotes(changelog: string, version: string): string {
  const lines = changelog.split('\n')
  const start = lines.findIndex((line) => isHeading(line) && line.split(/[\s(]+/)[1] === version)
  if (start < 0) throw new Error(`CHANGELOG.md has no section "## ${version}"`)
  const length = lines.slice(start + 1).findIndex(isHeading)
  const notes = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length).join('\n')
  if (notes.trim() === '') throw new Error(`the section "## ${version}" of CHANGELOG.md is empty`)
  return `${notes.trim()}\n`
}
