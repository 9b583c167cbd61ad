/** `taskmill reject`: rejects a task that waits for an approval. */
import { answerCommand } from './answer-approval.ts'

export const reject = answerCommand('reject', 'Reject a task that waits for an approval. It fails, with code denied.')
