/** Names and labels of runtime services. In a file of their own, because the client does not need the schemas. */

/** Runtime services that control may have. */
export const MAX_RUNTIMES = 256

/** The name of a runtime service without one. */
export const DEFAULT_RUNTIME = 'default'

/** The name of a runtime service: part of a path, and never `.` or `..`. */
export const RUNTIME_NAME = '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'
export const RUNTIME_NAME_RULE = '1 to 63 letters, digits, ".", "_" or "-", the first a letter or digit'

/** Labels that a runtime service may have, and that a task may ask for. */
export const MAX_RUNTIME_LABELS = 64

export const RUNTIME_LABEL = '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$'
export const RUNTIME_LABEL_RULE = '1 to 63 letters, digits, ".", "_", "/" or "-", the first a letter or digit'

/** A comma or a space would end the label on a command line or in a variable. */
export const RUNTIME_LABEL_VALUE = '^[^,\\s\\p{Cc}]{0,63}$'
export const RUNTIME_LABEL_VALUE_RULE = 'at most 63 characters, none of them a comma, a space or a control character'

/** By name. A label without a value has an empty one. */
export type RuntimeLabels = Readonly<Record<string, string>>
