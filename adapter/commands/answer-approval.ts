/** The common part of `taskmill approve` and `taskmill reject`: the answer to a task that waits for an approval. */
import type { ApprovalAnswer } from '../../shared/contract/approval.ts'
import { UsageError } from '../../shared/contract/errors.ts'
import { text } from '../../shared/settings/flags.ts'
import { atTask } from '../addresses.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'
import { shown } from './shown.ts'

export const answerCommand = (verb: 'approve' | 'reject', summary: string) =>
  defineCommand({
    summary,
    usage: 'ID [--who NAME] [--why TEXT]',
    settings: {
      who: text({ value: 'NAME', help: 'Who answers, for the record. Default: your user name (USER, else LOGNAME).' }),
      why: text({ value: 'TEXT', help: 'The reason, for the record.' }),
    },
    maxArguments: 1,
    async run({ values: { who, why }, positionals, client, env }) {
      const id = onlyIdOf(positionals, 'task id')
      const answer: ApprovalAnswer = { who: who || userName(env), ...(why !== '' && { why }) }
      const body = new TextEncoder().encode(JSON.stringify(answer))
      const { answer: record } = await atTask(id, client, ({ path }) =>
        client.call({ method: 'POST', path: `${path}/${verb}`, body }),
      )
      return shown({ kind: 'task', name: id }, record, { client, env })
    },
  })

/** The name of the user whose process this is. Throws `UsageError` if the environment has none. */
function userName({ USER, LOGNAME }: Readonly<Record<string, string | undefined>>): string {
  const name = USER || LOGNAME // not userInfo() of node:os: without USER, Bun answers "unknown"
  if (name) return name
  throw new UsageError('USER and LOGNAME are not set: say with --who NAME who answers')
}
