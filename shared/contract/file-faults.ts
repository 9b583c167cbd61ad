/** What the health of a service says of files that it reads again when they change. */
import { maybe, text } from './answer-schema.ts'

export const fileFaults = {
  tokens_fault: maybe(text('Why the tokens file of now is not in force, and the tokens of an earlier one are.')),
  secrets_fault: maybe(
    text('Present while the file of --secrets-rules cannot be used: the rules before it stay in force.'),
  ),
}
