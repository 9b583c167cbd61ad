/** The address of a service, in a setting. Pure. */
import type { IpAddress } from '../../shared/egress/ip-address.ts'
import { authorityOf } from './authority.ts'

export interface ServiceAddress {
  readonly address: IpAddress
  readonly port: number
}

/** `10.0.0.5:8080`, `[::1]:8080`, `localhost:8080`; `:8080` has the unspecified address. Undefined for other texts. */
export function serviceAddressOf(text: string): ServiceAddress | undefined {
  const found = authorityOf(text.replace(/^localhost:/, '127.0.0.1:').replace(/^:/, '0.0.0.0:'))
  return found !== undefined && 'address' in found.host ? { address: found.host.address, port: found.port } : undefined
}
