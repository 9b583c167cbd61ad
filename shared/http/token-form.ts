/** The form of a bearer token. Pure. */

export const TOKEN_RULE = '1 to 4096 visible ASCII characters without spaces'

/** Whether `text` has the form of `TOKEN_RULE`. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]{1,4096}$/.test(text)
