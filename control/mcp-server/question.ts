/**
 * Questions to the person who uses an MCP host.
 *
 * A tool that needs an answer returns `NeedsAnswers`. The host asks, and calls the tool again with the same input and the
 * answers. So nothing is kept between requests. Only hosts of the newer era of the protocol can do that: they tell with each
 * request that they can (`elicitation`). In the older era the answer would be a request of its own to a session, and the
 * service has none.
 */

/** The fields of a form, as the protocol restricts them. */
export type FormField =
  | { readonly type: 'string'; readonly title: string; readonly maxLength?: number }
  | { readonly type: 'string'; readonly title: string; readonly enum: string[] }

export interface Question {
  /** Names the answer in the next call. */
  readonly key: string
  readonly message: string
  readonly fields: Readonly<Record<string, FormField>>
  readonly required: readonly string[]
}

/** In place of an answer. */
export class NeedsAnswers {
  constructor(readonly questions: readonly Question[]) {}
}

/** What the host says of a question. `content` was filled in by the person, and nobody has checked it. */
export interface Reply {
  readonly isAccepted: boolean
  readonly content: Readonly<Record<string, unknown>>
}

export interface Asker {
  /** The host can ask the person who uses it. */
  readonly canAsk: boolean
  /** This call brings answers to questions of the call before. */
  readonly hasReplies: boolean
  /** The answer to the question with this key; undefined if this call brings none. */
  replyTo(key: string): Reply | undefined
}
