/** HTML of components that have no state. Pure. */

/** What JSX makes of an element. */
interface Element {
  readonly type: string | ((props: object) => unknown)
  readonly props: Readonly<Record<string, unknown>>
}

const EMPTY_ELEMENTS = new Set(['input', 'br', 'hr', 'img'])

/** The policy of the page refuses them in HTML, so `htmlOf` does. */
const REFUSED = new Set(['style', 'dangerouslySetInnerHTML'])

/** Throws for what the page must not have in its HTML. */
export function htmlOf(node: unknown): string {
  if (Array.isArray(node)) return node.map(htmlOf).join('')
  if (node === null || node === undefined || typeof node === 'boolean') return ''
  if (typeof node !== 'object') return escaped(String(node))
  const { type, props } = node as Element
  if (typeof type === 'function') return htmlOf(type(props))
  const { children, ...attributes } = props
  const open = `<${type}${Object.entries(attributes).map(attribute).join('')}>`
  return EMPTY_ELEMENTS.has(type) ? open : `${open}${htmlOf(children)}</${type}>`
}

function attribute([name, value]: [name: string, value: unknown]): string {
  if (REFUSED.has(name)) throw new Error(`the HTML of the page cannot have ${name}`)
  if (typeof value === 'function' || value === undefined || value === null || value === false) return ''
  return ` ${name.toLowerCase()}="${value === true ? '' : escaped(String(value))}"`
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
