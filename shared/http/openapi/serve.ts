/** `GET /openapi.json` and `GET /docs`. Both are made with the first request and load their code then. */
import type { AnyElysia } from 'elysia'
import { urlOf } from '../request-url.ts'
import type { OpenApiDocument, ServiceInfo } from './document.ts'
import { anyText, described, describedRoutes, other } from './route.ts'

const section = 'Documentation'

/** Adds both routes. They describe every route that the app has when the first request arrives. */
export function addDescriptionRoutes(app: AnyElysia, info: ServiceInfo): AnyElysia {
  const make = async () => (await import('./document.ts')).openApiDocument(info, describedRoutes(app))
  let made: Promise<OpenApiDocument> | undefined
  const document = () => (made ??= make())
  let json: string | undefined
  return app
    .get(
      '/openapi.json',
      async () => (json ??= JSON.stringify(await document())),
      described({
        section,
        right: 'none',
        summary: 'Read this description',
        answers: { 200: other('application/json', 'The OpenAPI 3.1 document of the service.') },
      }),
    )
    .get(
      '/docs',
      async ({ query, set, request }) => {
        const { PAGE_HEADERS, referencePage } = await import('./page.ts')
        Object.assign(set.headers, PAGE_HEADERS)
        return referencePage(await document(), { search: query.q ?? '', origin: new URL(urlOf(request)).origin })
      },
      described({
        section,
        right: 'none',
        summary: 'Read the documentation',
        query: { q: anyText('Words that an entry must have. Others are left out.') },
        answers: { 200: other('text/html; charset=utf-8', 'A page for people.') },
      }),
    )
}
