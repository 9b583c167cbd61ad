/** Why a configuration file of a host is left as it is. */
export class HostFileFault extends Error {
  override name = 'HostFileFault'
}
