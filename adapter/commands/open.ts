/** `taskmill open`: opens the dashboard in the browser, signed in by a link that works once. */

import { UsageError } from '../../shared/contract/errors.ts'
import type { SessionLink } from '../../shared/contract/session.ts'
import { socketPathOf } from '../../shared/http/socket-address.ts'
import { flag } from '../../shared/settings/flags.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'

/** Milliseconds for the program that opens addresses. One that is still there then shows the page itself. */
const OPEN_WITHIN_MS = 2_000

export const open = defineCommand({
  summary: 'Open the dashboard in the browser, signed in with the token of this client.',
  usage: '[--print]',
  settings: { print: flag({ help: 'Print the link, and open nothing. It works once, for a minute.' }) },
  maxArguments: 0,
  async run({ values, client, service, env }): Promise<Answer> {
    if (socketPathOf(service.url) !== undefined)
      throw new UsageError(
        'a browser cannot open a Unix socket: start the service on a port (taskmill up without --socket)',
      )
    const { code, expires } = (await client.call({ method: 'POST', path: '/session/links' })) as SessionLink
    const url = `${service.url}/${code === undefined ? '' : `#/sign-in/${code}`}`
    const isOpened = !values.print && (await isShown(url, env.PATH))
    return {
      data: { url, ...(expires !== undefined && { expires }), opened: isOpened },
      exitCode: EXIT.success,
      warnings: isOpened || values.print ? [] : [`${OPENER} did not open a browser: open the url yourself`],
    }
  },
})

const OPENER = process.platform === 'darwin' ? 'open' : 'xdg-open'

async function isShown(url: string, path: string | undefined): Promise<boolean> {
  const program = Bun.which(OPENER, { PATH: path ?? '' })
  if (program === null) return false
  const child = Bun.spawn([program, url], { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore', detached: true })
  child.unref()
  return (await Promise.race([child.exited, Bun.sleep(OPEN_WITHIN_MS).then(() => 0)])) === 0
}
