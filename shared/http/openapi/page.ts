/**
 * The page `/docs`: the OpenAPI document as a reference for people. Pure.
 *
 * The page needs no script and no other request: its style sheet is part of it, and its search is a form that loads the page
 * again. All text goes through `html`, which escapes it.
 */
import type { Media, OpenApiDocument, Operation, Parameter, Response, Schema } from './document.ts'

/** Text that is HTML already. */
class Html {
  constructor(readonly text: string) {}
}

type Part = string | number | Html | readonly Html[]

/** A template whose values are escaped, unless they are HTML. */
const html = (parts: TemplateStringsArray, ...values: readonly Part[]): Html =>
  new Html(parts.reduce((text, part, i) => `${text}${htmlOf(values[i - 1]!)}${part}`))

function htmlOf(value: Part): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return (value as readonly Html[]).map(({ text }) => text).join('')
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

const NOTHING = new Html('')

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --link: #0b62c4; --quiet: #666; }
@media (prefers-color-scheme: dark) { :root { --link: #7ab7ff; --quiet: #aaa; } }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; }
.page { display: grid; grid-template-columns: 20rem minmax(0, 60rem); gap: 2rem; padding: 0 1.5rem; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; padding: 1.5rem 0; font-size: .875rem; }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0; }
nav li a { display: block; padding: .125rem 0; overflow-wrap: anywhere; }
nav h2 { font-size: .875rem; margin: 1rem 0 .25rem; }
main { padding: 1.5rem 0 4rem; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0; }
h3 { font-size: 1.0625rem; margin: 0; }
h4 { font-size: .875rem; margin: 1rem 0 .25rem; }
article { border-top: 1px solid var(--line); padding: 1.25rem 0; }
p { margin: .25rem 0; }
code, pre { font: .8125rem/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .75rem; overflow: auto; margin: .25rem 0; border-radius: .25rem; }
.path { overflow-wrap: anywhere; }
.method { font-weight: 700; }
.quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; font-size: .875rem; display: block; overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
input { font: inherit; width: 100%; padding: .375rem .5rem; border: 1px solid var(--line); border-radius: .25rem; }
@media (max-width: 50rem) { .page { display: block; padding: 0 1rem; } nav { position: static; max-height: none; } }
`

const STYLE_HASH = new Bun.CryptoHasher('sha256').update(STYLE).digest('base64')

/** Headers of the page. Nothing but its own style sheet and its own form may work in it. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

/** Characters of a search that are used. */
const MAX_SEARCH_CHARACTERS = 200

interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** The page, with the entries that have every word of `search`. `origin` is the address that examples call. */
export function referencePage(
  document: OpenApiDocument,
  { search, origin }: { search: string; origin: string },
): string {
  const words = search.slice(0, MAX_SEARCH_CHARACTERS).toLowerCase().split(/\s+/).filter(Boolean)
  const isFound = (text: string) => words.every((word) => text.toLowerCase().includes(word))
  const entries = Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ method, path, operation })))
    .filter((entry) => isFound(searchedText(entry)))
  const linked = schemasBelow(
    entries.map(({ operation }) => operation),
    document.components.schemas,
  )
  const schemas = Object.entries(document.components.schemas).filter(
    ([name, schema]) => linked.has(name) || isFound(`${name} ${JSON.stringify(schema)}`),
  )
  const sections = document.tags
    .map(({ name }) => ({ name, entries: entries.filter(({ operation }) => operation.tags.includes(name)) }))
    .filter((section) => section.entries.length > 0)
  const { title, version, description } = document.info
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<div class="page">
<nav aria-label="Contents">
<form action="docs" role="search"><label for="q">Search</label><input id="q" name="q" type="search" value="${search}"></form>
${sections.map(contentsOf)}
${schemas.length === 0 ? NOTHING : html`<h2>Schemas</h2><ul>${schemas.map(([name]) => html`<li>${schemaLink(name)}</li>`)}</ul>`}
</nav>
<main>
<h1>${title}</h1>
<p class="quiet">Version ${version}. <a href="openapi.json">openapi.json</a></p>
<p>${description}</p>
${words.length === 0 ? NOTHING : html`<p>${entries.length} entries have “${search}”. <a href="docs">Show all</a></p>`}
${sections.map((section) => html`<h2>${section.name}</h2>${section.entries.map((entry) => article(entry, origin))}`)}
${schemas.length === 0 ? NOTHING : html`<h2>Schemas</h2>${schemas.map(schemaArticle)}`}
</main>
</div>
</body>
</html>
`.text
}

/** Names of the schemas that `value` refers to, and of those that they refer to. */
function schemasBelow(
  value: unknown,
  schemas: Readonly<Record<string, Schema>>,
  found = new Set<string>(),
): Set<string> {
  for (const [, name] of JSON.stringify(value).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    if (found.has(name!)) continue
    found.add(name!)
    schemasBelow(schemas[name!], schemas, found)
  }
  return found
}

const searchedText = ({ method, path, operation }: Entry): string =>
  `${method} ${path} ${operation.tags.join(' ')} ${JSON.stringify(operation)}`

const contentsOf = ({ name, entries }: { name: string; entries: readonly Entry[] }): Html =>
  html`<h2>${name}</h2><ul>${entries.map(
    ({ method, path, operation }) =>
      html`<li><a href="#${operation.operationId}"><code>${method.toUpperCase()} ${path}</code></a></li>`,
  )}</ul>`

const article = ({ method, path, operation }: Entry, origin: string): Html => html`
<article id="${operation.operationId}">
<h3>${operation.summary}</h3>
<p class="path"><code><span class="method">${method.toUpperCase()}</span> ${path}</code></p>
${operation.description === undefined ? NOTHING : html`<p>${operation.description}</p>`}
${operation.parameters === undefined ? NOTHING : parameterTable(operation.parameters)}
${operation.requestBody === undefined ? NOTHING : bodyPart(operation.requestBody.content)}
<h4>Example</h4><pre><code>${curlLine({ method, path, operation }, origin)}</code></pre>
<h4>Answers</h4>${answerTable(operation.responses)}
</article>`

const parameterTable = (parameters: readonly Parameter[]): Html =>
  html`<h4>Parameters</h4><table><tr><th>name</th><th>in</th><th>type</th><th>meaning</th></tr>${parameters.map(
    (parameter) =>
      html`<tr><td><code>${parameter.name}</code></td><td>${parameter.in}</td><td>${typeOf(parameter.schema)}</td><td>${parameter.description ?? ''}</td></tr>`,
  )}</table>`

const bodyPart = (content: Readonly<Record<string, Media>>): Html => {
  const { schema = {} } = content['application/json'] ?? {}
  return html`<h4>Body</h4>${'$ref' in schema ? html`<p>${typeOf(schema)}</p>` : fieldTable(schema)}`
}

const answerTable = (responses: Readonly<Record<string, Response>>): Html =>
  html`<table><tr><th>status</th><th>body</th><th>meaning</th></tr>${Object.entries(responses).map(
    ([status, { description, content = {}, headers = {} }]) =>
      html`<tr><td>${status === 'default' ? 'other' : status}</td><td>${Object.entries(content).map(
        ([type, { schema }]) => html`<div>${type.startsWith('application/json') ? typeOf(schema ?? {}) : type}</div>`,
      )}</td><td>${description}${Object.entries(headers).map(
        ([name, header]) => html`<br><code>${name}</code>: ${header.description}`,
      )}</td></tr>`,
  )}</table>`

const schemaArticle = ([name, schema]: readonly [string, Schema]): Html =>
  html`<article id="schema-${name}"><h3>${name}</h3>${fieldTable(schema)}</article>`

const schemaLink = (name: string): Html => html`<a href="#schema-${name}">${name}</a>`

interface Field {
  readonly path: string
  readonly isRequired: boolean
  readonly schema: Schema
}

/** The fields of a schema at every depth: `limits.pids_max`, `tasks[].id`. Named schemas are only referred to. */
function fieldsOf(schema: Schema, at = ''): Field[] {
  if (typeof schema.items === 'object') return fieldsOf(schema.items as Schema, `${at}[]`)
  const required = new Set(schema.required as readonly string[] | undefined)
  return Object.entries((schema.properties ?? {}) as Readonly<Record<string, Schema>>).flatMap(([name, property]) => {
    const path = at === '' ? name : `${at}.${name}`
    return [{ path, isRequired: required.has(name), schema: property }, ...fieldsOf(property, path)]
  })
}

function fieldTable(schema: Schema): Html {
  const fields = fieldsOf(schema)
  if (fields.length === 0) return html`<p>${typeOf(schema)}</p>`
  return html`<table><tr><th>field</th><th>type</th><th>meaning</th></tr>${fields.map(
    (field) =>
      html`<tr><td><code>${field.path}</code>${field.isRequired ? NOTHING : html` <span class="quiet">optional</span>`}</td><td>${typeOf(field.schema)}</td><td>${String(field.schema.description ?? '')}</td></tr>`,
  )}</table>`
}

/** The type of a value in a few words. */
function typeOf(schema: Schema): Html {
  const { $ref, type, items, prefixItems, enum: values, minimum, maximum, anyOf, format, additionalProperties } = schema
  if (typeof $ref === 'string') return schemaLink($ref.slice($ref.lastIndexOf('/') + 1))
  if ('const' in schema) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (Array.isArray(values)) return html`${values.map((value, i) => html`${i === 0 ? '' : ', '}<code>${value}</code>`)}`
  if (Array.isArray(anyOf)) {
    return html`${(anyOf as readonly Schema[]).map((one, i) => html`${i === 0 ? '' : ' or '}${typeOf(one)}`)}`
  }
  if (Array.isArray(prefixItems)) return html`array of ${prefixItems.length} values`
  if (type === 'array') return html`array of ${typeOf((items ?? {}) as Schema)}`
  if (type === 'object' && typeof additionalProperties === 'object') {
    return html`object of ${typeOf(additionalProperties as Schema)}`
  }
  const range = minimum === undefined ? '' : maximum === undefined ? ` from ${minimum}` : ` ${minimum} to ${maximum}`
  return html`${format === 'date-time' ? 'time' : String(type ?? 'any JSON')}${range}`
}

/** A command that sends the request. */
function curlLine({ method, path, operation }: Entry, origin: string): string {
  const url = `${origin}${path}`
  const given =
    method === 'get' || (method === 'post' && operation.requestBody !== undefined) ? '' : ` -X ${method.toUpperCase()}`
  const example = operation.requestBody?.content['application/json']?.example
  const data = example === undefined ? '' : ` -d ${quoted(JSON.stringify(example))}`
  return `curl -s${given} ${quoted(url)}${data}`
}

/** A word of a shell, in quotes if it needs them. */
const quoted = (text: string): string => (/^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
