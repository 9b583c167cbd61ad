/** The error of an attempt that is stopped. The reason is known where the signal was fired. */
import { ExecutionError } from '../executor.ts'

export const stoppedError = () => new ExecutionError('cancelled', 'the attempt is not waited for any more')
