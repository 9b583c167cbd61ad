/** The other replicas of a service without a database: there are none. */

import type { OtherReplicas } from './keeper.ts'
import { noOwner } from './no-owner.ts'

export const NO_OTHERS: OtherReplicas = {
  hopHeader: '',
  replicaHeader: '',
  adopting: [],
  isHere: () => true,
  unreadable: async () => [], // a file that cannot be read stops the start
  removeUnreadable: async () => false,
  find: async () => undefined,
  all: async () => ({ live: [], gone: [] }),
  ask: async ({ id }) => {
    throw noOwner(`there is no replica ${id}`)
  },
}
