/** The schema that holds every table of ours. A database holds one cluster of control services. */
export const SCHEMA = 'taskmill'
