/**
 * What the page shows of a file of a task: an image of a few types, JSON, or text. Everything else, HTML and SVG too, is
 * text: a task chooses the content. Pure.
 */

/** Bytes of a text that are shown. */
export const MAX_TEXT_BYTES = 64 * 1024

/** Bytes of an image that is shown. */
export const MAX_IMAGE_BYTES = 8 * 1024 * 1024

const IMAGE_TYPES: Readonly<Record<string, string>> = {
  ...{ png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp' },
}

export type Preview =
  | { readonly kind: 'image'; readonly url: string }
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'text'; readonly text: string; readonly isCut: boolean }
  | { readonly kind: 'none'; readonly why: string }

/** The type of an image that is shown as one. */
export const imageTypeOf = (name: string): string | undefined =>
  IMAGE_TYPES[/\.([a-z]+)$/.exec(name.toLowerCase())?.[1] ?? '']

/** The preview of a file of `size` bytes that begins with `bytes`. */
export function textPreview(name: string, bytes: Uint8Array, size: number): Preview {
  if (bytes.includes(0)) return { kind: 'none', why: 'The file is binary.' }
  const isCut = bytes.length < size
  const text = new TextDecoder().decode(bytes)
  const value = isCut || !/\.json$/i.test(name) ? undefined : jsonIn(text)
  return value === undefined ? { kind: 'text', text, isCut } : { kind: 'json', value }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const pathIn = (directory: string, name: string): string => (directory === '' ? name : `${directory}/${name}`)

/** The directory around `path`. */
export const outerOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
