/** The flags of `taskmill-runtime doctor --escape`. */
import { flag, text } from '../../shared/settings/flags.ts'
import { serveSettings } from '../config.ts'

const { sandboxUid, sandboxUids, sandboxMask, sandboxExpose } = serveSettings

export const escapeSettings = {
  escape: flag({
    help: 'Try to escape from a sandbox in every way we know, and report what is not blocked. The attempts are harmless.',
  }),
  rootfs: text({
    value: 'directory',
    help: 'With --escape: the rootfs of the sandbox, as with sandbox.chroot. Default: the read-only host view.',
  }),
  ...{ sandboxUid, sandboxUids, sandboxMask, sandboxExpose },
}
