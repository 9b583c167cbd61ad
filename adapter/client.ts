/** The client of the control service, for all subcommands. */

import { httpUrl, ServiceClient } from '../shared/http/client.ts'
import type { CalledService } from '../shared/http/connection-fault.ts'

/** The setting `--url` of every subcommand. */
export const serviceUrlSetting = httpUrl({
  variable: 'SERVICE_URL',
  default: 'http://127.0.0.1:8080',
  help: 'Base URL of the control service.',
})

export const controlService: CalledService = {
  name: 'control',
  start: 'taskmill up',
  urlVariable: 'SERVICE_URL',
  urlFlag: '--url',
  tokenVariable: 'SERVICE_TOKEN',
}

export const controlClient = (url: string, token: string | undefined): ServiceClient =>
  new ServiceClient(controlService, { url, token })
