/**
 * Guards the optional methods of an executor.
 *
 * The service calls them while it reviews a graph, cancels a task or changes the store. An unexpected error of such a
 * method, or a rejected promise, is logged and has no other effect.
 */
import { stackOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { ExecutionError, type Executor } from './executor.ts'

const GUARDED_METHODS = [
  'killRemote',
  'forget',
  'waitingFor',
  'waitingHere',
  'parametersOf',
  'inputFault',
  'checkInput',
  'secretsOf',
  'sendingOf',
  'onBehalfOf',
  'knownResult',
] as const
type GuardedMethod = (typeof GUARDED_METHODS)[number]

/** `executor` with guarded methods. `execute` is not guarded: its errors fail the attempt. */
export function guarded(executor: Executor, log: Log): Executor {
  if (GUARDED_METHODS.every((method) => !executor[method])) return executor
  const { killRemote, forget, waitingFor, waitingHere, parametersOf, inputFault, checkInput } = executor
  const { secretsOf, sendingOf, onBehalfOf, knownResult } = executor
  const broke = (method: GuardedMethod, error: unknown, fields: object = {}) =>
    log.error('executor broke', { type: executor.type, ...fields, in: method, cause: stackOf(error) })
  // A review calls the method for each task of a graph, so only its first mistake is logged.
  const logged = new Set<GuardedMethod>()
  const brokeReview = (method: GuardedMethod, error: unknown) => {
    if (logged.has(method)) return
    logged.add(method)
    broke(method, error)
  }
  return {
    type: executor.type,
    execute: (task, context) => executor.execute(task, context),
    ...(executor.boundsItsStop !== undefined && { boundsItsStop: executor.boundsItsStop }),
    ...(executor.startsLater !== undefined && { startsLater: executor.startsLater }),
    ...(executor.resultSoFar && { resultSoFar: async (handle, call) => executor.resultSoFar?.(handle, call) }),
    ...(executor.readLog && { readLog: executor.readLog.bind(executor) }),
    ...(executor.readNetwork && { readNetwork: async (handle, call) => executor.readNetwork!(handle, call) }),
    ...(executor.openFile && { openFile: async (...given) => executor.openFile!(...given) }),
    ...(executor.look && { look: async (...given) => executor.look!(...given) }),
    ...(executor.plan && { plan: async (task, call) => executor.plan!(task, call) }),
    ...(killRemote && {
      killRemote: (task, handle) =>
        attempt(
          () => killRemote.call(executor, task, handle),
          (error) => broke('killRemote', error, { task_id: task.id }),
        ),
    }),
    ...(forget && {
      forget: (task) =>
        attempt(
          () => forget.call(executor, task),
          (error) => broke('forget', error, { task_id: task.id }),
        ),
    }),
    ...(waitingFor && {
      waitingFor: async (handles) => {
        try {
          return await waitingFor.call(executor, handles)
        } catch (error) {
          brokeReview('waitingFor', error)
          return new Map()
        }
      },
    }),
    ...(waitingHere && {
      waitingHere: (name) =>
        attempt(
          () => waitingHere.call(executor, name),
          (error) => brokeReview('waitingHere', error),
        ),
    }),
    ...(inputFault && {
      inputFault: (...given) =>
        attempt(
          () => inputFault.call(executor, ...given),
          (error) => brokeReview('inputFault', error),
        ),
    }),
    ...(parametersOf && {
      parametersOf: (toolName) => {
        const parameters = attempt(
          () => parametersOf.call(executor, toolName),
          (error) => brokeReview('parametersOf', error),
        )
        return parameters instanceof Promise ? undefined : parameters
      },
    }),
    ...(secretsOf && {
      secretsOf: (toolName) =>
        attempt(
          () => secretsOf.call(executor, toolName),
          (error) => brokeReview('secretsOf', error),
        ),
    }),
    ...(sendingOf && {
      sendingOf: (...given) =>
        attempt(
          () => sendingOf.call(executor, ...given),
          (error) => brokeReview('sendingOf', error),
        ),
    }),
    ...(onBehalfOf && {
      onBehalfOf: (...given) =>
        attempt(
          () => onBehalfOf.call(executor, ...given),
          (error) => brokeReview('onBehalfOf', error),
        ),
    }),
    ...(knownResult && {
      knownResult: (task) => {
        const result = attempt(
          () => knownResult.call(executor, task),
          (error) => brokeReview('knownResult', error),
        )
        return result instanceof Promise ? undefined : result
      },
    }),
    ...(checkInput && {
      checkInput: (...given) =>
        attempt(
          () => checkInput.call(executor, ...given),
          (error) => {
            if (error instanceof ExecutionError) throw error
            brokeReview('checkInput', error)
          },
          // The review does not wait for a promise.
          (error) => brokeReview('checkInput', error),
        ),
    }),
  }
}

/**
 * The result of `method`, which may be a promise: the type of a method without a result allows that. Undefined if it
 * threw.
 */
function attempt<T>(
  method: () => T,
  onError: (error: unknown) => void,
  onRejection: (error: unknown) => void = onError,
): T | undefined {
  try {
    const answer: unknown = method()
    if (answer instanceof Promise) answer.catch(onRejection)
    return answer as T
  } catch (error) {
    onError(error)
    return undefined
  }
}
