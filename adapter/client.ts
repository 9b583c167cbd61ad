/** Calls to the control service, which all subcommands make. */
import { httpUrl, ServiceClient } from '../shared/http-client.ts'

/** The address of the control service, as a flag of every subcommand that calls it. */
export const serviceUrlSetting = httpUrl({
  variable: 'SERVICE_URL',
  default: 'http://127.0.0.1:8080',
  help: 'Base address of the control service.',
})

export const controlClient = (url: string, token: string | undefined): ServiceClient =>
  new ServiceClient(
    { name: 'control', start: 'taskmill-control', urlVariable: 'SERVICE_URL', urlFlag: '--url' },
    { url, token },
  )
