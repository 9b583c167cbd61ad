/**
 * A request of a task that carries secrets: their values are put into its input when it is made, and what comes back, also an
 * error, has `***` in their place.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { SecretFault, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { OF_SECRETS } from '../../shared/request/secrets.ts'
import { CarriedSecrets, SecretRefused, type SecretSender } from '../outbound/carried-secrets.ts'
import { pathText } from '../rules/placeholders.ts'
import type { InputWithSecrets } from '../rules/secret-places.ts'
import { ExecutionError, type ExecutorContext } from './executor.ts'
import { readySecrets } from './ready-secrets.ts'

export interface SentSecrets {
  readonly directory: SecretsDirectory
  readonly sender: SecretSender
  /** Whether a value at the place has to stay in one line. */
  readonly isLine: (path: readonly (string | number)[]) => boolean
  /** Whose request it is, and what ends the wait for secrets of a command. */
  readonly context: Pick<ExecutorContext, 'signal' | 'tenant'>
}

/**
 * The result of `send` for `given` with its values. What `send` returns is masked, unless it has done that itself (`isMasked`).
 */
export async function sendingSecrets<T>(
  { directory, sender, isLine, context: { signal, tenant } }: SentSecrets,
  given: InputWithSecrets,
  send: (input: unknown, secrets: CarriedSecrets) => T | Promise<T>,
  isMasked = false,
): Promise<T> {
  const secrets = new CarriedSecrets(directory, sender, tenant)
  try {
    const names = given.places.map(({ secret }) => secret.name)
    await readySecrets(directory, names, secrets.asker, signal)
    const result = await send(withValues(secrets, given, isLine), secrets)
    return isMasked ? result : ((await runCooperatively(secrets.masked(result))) as T)
  } catch (error) {
    throw await maskedError(secrets, error)
  }
}

function withValues(secrets: CarriedSecrets, given: InputWithSecrets, isLine: SentSecrets['isLine']): unknown {
  return given.with(({ path, secret }) => {
    try {
      return secrets.textOf(secret, isLine(path))
    } catch (error) {
      if (!(error instanceof SecretFault)) throw error
      const message = `${pathText('params', path)}: ${error.message}`
      throw new ExecutionError('invalid_input', message, { retryable: false, isFinal: true, details: OF_SECRETS })
    }
  })
}

/** The error without its cause, which may show what was sent. */
async function maskedError(secrets: CarriedSecrets, error: unknown): Promise<Error> {
  const message = secrets.maskedText(messageOf(error))
  if (error instanceof SecretRefused) return new ExecutionError('denied', message, { retryable: false, isFinal: true })
  if (!(error instanceof ExecutionError)) return new Error(message)
  const { code, retryable, source, isFinal } = error
  const shown = secrets.masked({ result: error.result, details: error.details, tail: error.tail })
  const { result, details, tail } = (await runCooperatively(shown)) as Pick<
    ExecutionError,
    'result' | 'details' | 'tail'
  >
  return new ExecutionError(code, message, {
    ...{ result, details, tail, retryable, isFinal },
    ...(source !== undefined && { source }),
  })
}
