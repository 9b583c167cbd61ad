/**
 * Goal: a task allocates no more in its workspace than --disk-bytes, whatever it does to hide it.
 * Method: launchers run small scripts that write to a workspace.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { constants } from 'node:os'
import { compiledOnly, describeLaunchers, type LauncherVariant, run, sh } from '../../support/launchers.ts'

setDefaultTimeout(60_000)

const { SIGKILL } = constants.signals
const KIB = 1024
const LIMIT = 512 * KIB

/** Runs `script` in an empty workspace. */
const write = (launcher: LauncherVariant, script: string, disk_bytes = LIMIT, owner: { uid?: number } = {}) =>
  run(launcher, { command: sh(`mkdir ../task/workspace; cd ../task/workspace; ${script}`), disk_bytes, ...owner })

const KILLED = { ending: { how: 'signaled', signal: SIGKILL }, reason: 'disk_limit' }

describeLaunchers('the limit on the workspace', (launcher) => {
  test.each([
    ['writes a file', 'head -c 2000000 /dev/zero > big; exec sleep 600'],
    ['reserves space', 'fallocate -l 2000000 big; exec sleep 600'],
    [
      'writes small files in directories',
      'for d in a b c; do mkdir -p $d/$d; for i in 1 2 3 4 5; do head -c 80000 /dev/zero > $d/$d/$i; done; done; exec sleep 600',
    ],
    ['ignores TERM', 'trap "" TERM; cat /dev/zero > big & head -c 2000000 /dev/zero > other; sleep 600'],
  ])('ends a task that %s', async (_, script) => {
    const ended = await write(launcher, script)
    expect(ended).toMatchObject(KILLED)
    expect(ended.disk_bytes).toBeGreaterThan(LIMIT)
  })

  test('counts what is allocated: holes are free, and a file with two names counts once', async () => {
    const script = 'truncate -s 1G hole; head -c 300000 /dev/zero > file; ln file name; ln file another; sleep 0.7'
    const ended = await write(launcher, script)
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'none'])
    expect(ended.disk_bytes).toBeGreaterThanOrEqual(290_000)
    expect(ended.disk_bytes).toBeLessThan(400_000)
  })

  test('tells what a task wrote that ended before anybody looked', async () => {
    const ended = await write(launcher, 'head -c 2000000 /dev/zero > big')
    expect(ended.disk_bytes).toBeGreaterThan(LIMIT)
  })

  test('is not there without --disk-bytes', async () => {
    const ended = await run(launcher, { command: sh('mkdir ../task/workspace; echo x > ../task/workspace/x') })
    expect(ended).not.toHaveProperty('disk_bytes')
  })

  // Root passes each directory. An ordinary user does not, not even as its owner.
  const owner = process.getuid?.() === 0 ? { uid: 65_534 } : {}

  compiledOnly(launcher)('counts what is in a directory that is closed to its owner', async () => {
    const script = 'mkdir shut; exec 3> shut/big; chmod 000 shut; head -c 2000000 /dev/zero >&3; exec sleep 600'
    expect(await write(launcher, script, LIMIT, owner)).toMatchObject(KILLED)
  })

  compiledOnly(launcher)('leaves such a directory as it is', async () => {
    const script =
      'mkdir shut; echo x > shut/x; chmod 000 shut; sleep 0.7; until [ $(stat -c %a shut) = 0 ]; do :; done'
    const ended = await write(launcher, script, LIMIT, owner)
    expect([ended.ending, ended.reason]).toEqual([{ how: 'exited', exit_code: 0 }, 'none'])
  })

  compiledOnly(launcher)('counts a tree that is too deep to be walked as too much', async () => {
    const script = 'i=0; while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i + 1)); done; exec sleep 600'
    expect(await write(launcher, script, 100_000_000)).toMatchObject(KILLED)
  })
})
