/** A poll of a call that another replica has. The rest of the type `mcp` is tried in tests/contract/executors-mcp.test.ts. */
import { expect, test } from 'bun:test'
import { McpExecutor } from '../../../control/executors/mcp.ts'
import { noOwner } from '../../../control/log/no-owner.ts'
import { McpServers } from '../../../control/mcp-client/servers.ts'
import { AddressGuard } from '../../../control/outbound/address-guard.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { testContext } from '../../support/executor-context.ts'
import { noServerOptions } from '../../support/mcp.ts'

test('a poll whose replica cannot be asked fails so that it may be repeated', async () => {
  const poll = async () => {
    throw noOwner('the call is being taken over by another replica')
  }
  const guard = new AddressGuard({ policy: 'public', flag: 'http-policy' })
  const executor = new McpExecutor(new McpServers([], noServerOptions), poll, new SecretsDirectory(''), guard)
  const task = {
    id: 'p',
    type: 'mcp',
    toolName: 'poll',
    input: { handle_id: 'call' },
    timeout: undefined,
    annotations: undefined,
  }
  const failing = Promise.resolve(executor.execute(task, testContext()))
  await expect(failing).rejects.toMatchObject({
    ...{ code: 'external_failure', retryable: true },
    message: expect.stringContaining('taken over by another replica'),
  })
})
