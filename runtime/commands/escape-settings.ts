/** The flags of `taskmill-runtime doctor --escape`. */
import { flag, text } from '../../shared/flags.ts'
import { serveSettings } from '../config.ts'

const { sandboxUid, sandboxMask, sandboxExpose } = serveSettings

export const escapeSettings = {
  escape: flag({
    help: 'Tries to escape from a sandbox, in every way we know, and says what is not blocked. It lays out baits and harms nothing.',
  }),
  rootfs: text({
    value: 'directory',
    help: 'With --escape: the root of the sandbox, as tasks ask for it with chroot. Without it: the host, read-only.',
  }),
  ...{ sandboxUid, sandboxMask, sandboxExpose },
}
