/** `scripts/install.sh` with the version and the address of one release. Pure. */

const isPlain = (value: string): boolean => /^[\w.:/@%+~-]+$/.test(value)

/** Throws if a value would need quoting in a shell, or if the script lacks a place for it. */
export function installerFor(script: string, values: { readonly VERSION: string; readonly RELEASES: string }): string {
  return Object.entries(values).reduce((text, [name, value]) => {
    if (!isPlain(value)) throw new Error(`${name} of the installer has characters that a shell reads: ${value}`)
    const place = new RegExp(`^${name}_OF_RELEASE=.*$`, 'm')
    if (!place.test(text)) throw new Error(`install.sh has no line ${name}_OF_RELEASE=`)
    return text.replace(place, () => `${name}_OF_RELEASE=${value}`)
  }, script)
}
