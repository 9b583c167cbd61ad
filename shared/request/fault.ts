/** A fault of a request. `message` names the field. Each service turns it into its own error. */
export class RequestFault extends Error {
  override name = 'RequestFault'
}

export const requestFault = (message: string) => new RequestFault(message)
