/** /api/v1/runtime/*: who the service is, what it can do, how it is set, what is reserved. */
import type { AnyElysia } from 'elysia'
import type {
  ResourcesSnapshot,
  RuntimeCapabilities,
  RuntimeConfigSummary,
  RuntimeInfo,
} from '../../shared/contract/runtime-info.ts'

export interface InfoRoutes {
  readonly info: RuntimeInfo
  readonly capabilities: RuntimeCapabilities
  readonly config: RuntimeConfigSummary
  readonly resources: () => ResourcesSnapshot
}

export const addInfoRoutes = (app: AnyElysia, { info, capabilities, config, resources }: InfoRoutes): AnyElysia =>
  app
    .get('/api/v1/runtime/info', () => info)
    .get('/api/v1/runtime/capabilities', () => capabilities)
    .get('/api/v1/runtime/config', () => config)
    .get('/api/v1/runtime/resources', () => resources())
