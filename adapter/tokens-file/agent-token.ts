/** The token of an agent in a tokens file: it reads, submits, and cancels what it submitted. It approves nothing. */
import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import type { Right } from '../../shared/contract/rights.ts'
import { tokenHash } from '../../shared/http/known-tokens.ts'
import { editTokens, tokensIn } from './edit.ts'

export const AGENT_RIGHTS: readonly Right[] = ['read', 'submit', 'cancel_own']

/** Whether this user can put tokens into the file: it is replaced by another one in its directory. */
export function isWritable(file: string): boolean {
  try {
    for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Whether the file has this token under this name. */
export const isAgentToken = (file: string, name: string, token: string): boolean =>
  tokensIn(file).some((entry) => entry.name === name && entry.hash === tokenHash(token))

/** Puts the token into the file, in place of an earlier one of that agent. Throws if another caller has the name. */
export const putAgentToken = (file: string, name: string, token: string): Promise<void> =>
  editTokens(file, (entries) => {
    const present = entries.find((entry) => entry.name === name)
    if (present !== undefined && `${present.rights}` !== `${AGENT_RIGHTS}`)
      throw new Error(
        `${file} has a token ${name} with other rights: revoke it (taskmill token revoke ${name}), or use --no-token`,
      )
    return [...entries.filter((entry) => entry !== present), { name, hash: tokenHash(token), rights: AGENT_RIGHTS }]
  })
