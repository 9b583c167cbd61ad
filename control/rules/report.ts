/**
 * Reports of faults in a submitted graph. Pure.
 *
 * A check reports each fault and continues with the valid part of the graph. A submission throws at the first report,
 * so it is refused for the first fault in the order of the checks. A dry run collects all reports.
 */
import { badRequest } from '../../shared/contract/errors.ts'

/** Receives the text of a fault. `taskId` is set if the fault belongs to one task. */
export type Report = (message: string, taskId?: string) => void

/** Throws 400. */
export const refuse: Report = (message) => {
  throw badRequest(message)
}
