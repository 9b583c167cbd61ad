/**
 * What becomes of a fault that a check finds in a submitted graph. Pure.
 *
 * A check reports each fault and goes on with the sound part of the graph. A submission throws at the first report, so
 * it is refused for the first fault in the order of the checks. A dry run collects the reports.
 */
import { badRequest } from '../../shared/errors.ts'

/** Takes the text of a fault. `taskId` names the task with the fault, where there is one. */
export type Report = (message: string, taskId?: string) => void

/** Throws 400. */
export const refuse: Report = (message) => {
  throw badRequest(message)
}
