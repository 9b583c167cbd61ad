/** A fault of a request: `message` names the field. Each service makes its own error of it. */
export class RequestFault extends Error {
  override name = 'RequestFault'
}

export const requestFault = (message: string) => new RequestFault(message)
