/** Bytes of a client that no careful program sends. The proxy closes such a connection: others may read the bytes differently. */
export class Malformed extends Error {
  override name = 'Malformed'
}
