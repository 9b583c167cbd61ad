/**
 * Combines the hooks and methods of an executor into one `execute`.
 *
 * Done once, at registration. An executor that only has `execute` is left unchanged and pays nothing.
 */
import { messageOf, stackOf } from '../../shared/contract/errors.ts'
import {
  type ExecutableTask,
  ExecutionError,
  type Executor,
  type ExecutorContext,
  type ExecutorHooks,
  invalidInput,
  type MethodExecutor,
} from './executor.ts'

type AnyExecutor = Executor | MethodExecutor
type Execute = Executor['execute']

/** `executor` with a single `execute`, as the scheduler calls it. */
export function runnable(executor: AnyExecutor): Executor {
  const execute = executionOf(executor)
  if (executor.beforeExecute || executor.afterExecute || executor.onError) {
    return executing(executor, (task, context) => runWithHooks(executor, execute, task, context))
  }
  return 'executeMethod' in executor ? executing(executor, execute) : executor
}

const executing = (executor: AnyExecutor, execute: Execute): Executor => ({
  ...{ type: executor.type, execute },
  ...(executor.boundsItsStop !== undefined && { boundsItsStop: executor.boundsItsStop }),
  ...(executor.startsLater !== undefined && { startsLater: executor.startsLater }),
  ...(executor.killRemote && { killRemote: (task, handle) => executor.killRemote?.(task, handle) }),
  ...(executor.resultSoFar && { resultSoFar: async (handle, call) => executor.resultSoFar?.(handle, call) }),
  ...(executor.waitingFor && { waitingFor: async (handles) => executor.waitingFor!(handles) }),
  ...(executor.waitingHere && { waitingHere: (attempt) => executor.waitingHere?.(attempt) }),
  ...(executor.readLog && { readLog: executor.readLog.bind(executor) }),
  ...(executor.readNetwork && { readNetwork: async (handle, call) => executor.readNetwork!(handle, call) }),
  ...(executor.openFile && { openFile: async (...given) => executor.openFile!(...given) }),
  ...(executor.plan && { plan: async (task, call) => executor.plan!(task, call) }),
  ...(executor.parametersOf && { parametersOf: (toolName) => executor.parametersOf?.(toolName) }),
  ...(executor.checkInput && { checkInput: (...given) => executor.checkInput?.(...given) }),
  ...(executor.inputFault && { inputFault: (...given) => executor.inputFault?.(...given) }),
  ...(executor.secretsOf && { secretsOf: (toolName) => executor.secretsOf?.(toolName) }),
  ...(executor.sendingOf && { sendingOf: (...given) => executor.sendingOf?.(...given) }),
  ...(executor.onBehalfOf && { onBehalfOf: (...given) => executor.onBehalfOf?.(...given) }),
  ...(executor.forget && { forget: (task) => executor.forget?.(task) }),
})

function executionOf(executor: AnyExecutor): Execute {
  if (!('executeMethod' in executor)) return (task, context) => executor.execute(task, context)
  return (task, context) => {
    if (task.toolName) return executor.executeMethod(task.toolName, task, context)
    if ('execute' in executor) return (executor as Executor).execute(task, context)
    throw invalidInput(`tool_name is required for type ${task.type}`)
  }
}

async function runWithHooks(
  hooks: ExecutorHooks,
  execute: Execute,
  given: ExecutableTask,
  context: ExecutorContext,
): Promise<unknown> {
  const replaced = await inHook('beforeExecute', context, () => hooks.beforeExecute?.(given, context))
  const task = replaced === undefined ? given : withInput(given, replaced.input)
  let result: unknown
  try {
    if (context.signal.aborted) throw new ExecutionError('cancelled', 'ended before it was executed')
    result = await execute(task, context)
  } catch (error) {
    const recovered = await inHook('onError', context, () => hooks.onError?.(task, error, context), error)
    if (recovered === undefined) throw error
    return recovered.result
  }
  const changed = await inHook('afterExecute', context, () => hooks.afterExecute?.(task, result, context))
  return changed === undefined ? result : changed.result
}

/** A copy of `task` with another input. The task itself belongs to the scheduler and keeps the submitted input. */
export const withInput = (
  { id, type, toolName, timeout, annotations, secrets }: ExecutableTask,
  input: unknown,
): ExecutableTask => ({
  ...{ id, type, toolName, timeout, annotations, input },
  ...(secrets !== undefined && { secrets }),
})

/** The result of `hook`. An error other than `ExecutionError` is a bug, so its message gets the name of the hook. */
async function inHook<T>(
  name: keyof ExecutorHooks,
  context: ExecutorContext,
  hook: () => T,
  handled?: unknown,
): Promise<Awaited<T>> {
  try {
    return await hook()
  } catch (error) {
    if (error instanceof ExecutionError || (handled !== undefined && error === handled)) throw error
    context.log.error('executor broke', { hook: name, cause: stackOf(error) })
    throw new ExecutionError('internal', `internal error in ${name}: ${messageOf(error)}`, { cause: error })
  }
}
