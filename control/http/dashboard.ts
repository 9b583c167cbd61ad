/**
 * The dashboard: the page at `/`, and its script and style sheet below `/assets/`.
 *
 * The page contains no data, so it needs no token. Its requests for data do. The names of script and style sheet
 * contain a hash of the content, so clients may cache them for ever. Both are prepared at the first request for the
 * page.
 */
import type { AnyElysia } from 'elysia'
import { ServiceError } from '../../shared/contract/errors.ts'
import { described, empty, other } from '../../shared/http/openapi/route.ts'

const section = 'The dashboard'

const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

interface Asset {
  readonly headers: Readonly<Record<string, string>> & { readonly etag: string }
  readonly plain: Uint8Array<ArrayBuffer>
  readonly zipped: Uint8Array<ArrayBuffer>
}

interface Page {
  readonly html: string
  readonly assets: ReadonlyMap<string, Asset>
}

export function addDashboardRoutes(app: AnyElysia): void {
  let page: Promise<Page> | undefined
  const prepared = () => (page ??= preparePage())
  app
    .get(
      '/',
      async () => {
        const headers = { ...SECURITY_HEADERS, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' }
        return new Response((await prepared()).html, { headers })
      },
      described({
        section,
        right: 'none',
        summary: 'Open the dashboard',
        answers: { 200: other('text/html; charset=utf-8', 'A page that shows graphs while they run.') },
      }),
    )
    .get(
      '/assets/:name',
      async ({ params, request }) => {
        const asset = (await prepared()).assets.get(params.name)
        if (asset === undefined) throw new ServiceError(404, `not found: GET /assets/${params.name}`)
        const isZipped = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
        const headers = { ...SECURITY_HEADERS, ...asset.headers, ...(isZipped && { 'content-encoding': 'gzip' }) }
        if (names(request.headers.get('if-none-match'), asset.headers.etag)) {
          return new Response(null, { status: 304, headers: { ...SECURITY_HEADERS, ...asset.headers } })
        }
        return new Response(isZipped ? asset.zipped : asset.plain, { headers })
      },
      described({
        section,
        right: 'none',
        summary: 'Read a file of the dashboard',
        params: { name: 'Name of the file, which has a hash of its content.' },
        headers: { 'If-None-Match': 'ETags of copies that the caller has, with commas between them, or `*`.' },
        answers: {
          200: { ...other('text/javascript', 'The script, or the style sheet.'), otherType: 'text/css' },
          304: empty('The caller has the file: `If-None-Match` names its ETag.'),
        },
        errors: { 404: 'There is no such file. Another version of the service may have had it.' },
      }),
    )
}

/** Whether `If-None-Match` names the ETag `W/"..."`. The comparison is weak. Source: RFC 9110, section 13.1.2. */
const names = (ifNoneMatch: string | null, etag: string): boolean =>
  ifNoneMatch?.trim() === '*' || ifNoneMatch?.match(/"[^"]*"/g)?.includes(etag.slice('W/'.length)) === true

async function preparePage(): Promise<Page> {
  // In modules of their own, so that a start does not load them.
  const { script, early, style, shell } = (await import('./dashboard-bundle.ts')).bundle
  const [{ gzip }, { promisify }] = await Promise.all([import('node:zlib'), import('node:util')])
  const assets = new Map<string, Asset>()
  const add = async (name: string, content: string, type: string): Promise<string> => {
    const plain = new TextEncoder().encode(content)
    const hash = new Bun.CryptoHasher('sha256').update(plain).digest('hex').slice(0, 16)
    const file = name.replace('.', `-${hash}.`)
    const headers = {
      ...{ 'content-type': `${type}; charset=utf-8`, 'cache-control': 'public, max-age=31536000, immutable' },
      ...{ vary: 'accept-encoding', etag: `W/"${hash}"` }, // weak: the same for both encodings
    }
    assets.set(file, { headers, plain, zipped: new Uint8Array(await promisify(gzip)(plain)) })
    return `assets/${file}` // relative: a proxy may serve the page below a path
  }
  const paths = {
    script: await add('dashboard.js', script, 'text/javascript'),
    early: await add('early.js', early, 'text/javascript'),
    style: await add('dashboard.css', style, 'text/css'),
  }
  return { html: pageOf(paths, shell), assets }
}

/** The sign of the page: a box that two others wait for. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M4 8h4M8 8V4h3M8 8v4h3' " +
  "fill='none' stroke='%236a6fe0' stroke-width='1.5'/><g fill='%236a6fe0'><rect x='1' y='6' width='4' height='4' rx='1'/>" +
  "<rect x='10.5' y='2' width='4' height='4' rx='1'/><rect x='10.5' y='10' width='4' height='4' rx='1'/></g></svg>"

/** The early script stands before the style sheet: it would wait for it. */
const pageOf = (paths: { script: string; early: string; style: string }, shell: string): string => `<!doctype html>
<html lang="en" class="at-graphs">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>taskmill</title>
<link rel="icon" href="${ICON}">
<script src="${paths.early}"></script>
<link rel="stylesheet" href="${paths.style}">
<script type="module" src="${paths.script}"></script>
</head>
<body><noscript>The dashboard needs JavaScript. The HTTP interface does not: GET /graphs.</noscript>${shell}</body>
</html>
`
