/**
 * How a caller makes sure that a submission whose fate it does not know can no longer be accepted.
 *
 * GET /healthz tells a reading of the clock of the runtime service (`clock`). With a submission, the caller sends back a
 * reading and the milliseconds since then until which the submission may be accepted. Only the runtime service reads its
 * clock, so clocks of two machines are never compared. A kill with `BAR_HEADER` refuses later submissions of an id that is
 * unknown. Runtime services of earlier versions have no `clock`, and ignore both headers.
 */

/** `READING+MILLISECONDS`: the submission is refused later than that after the reading, and by another process. */
export const NOT_AFTER_HEADER = 'x-service-not-after'

/** `true`: a later submission of this id is refused if there is no such task. */
export const BAR_HEADER = 'x-service-bar'

/** `details` of the 409 of a submission that came too late, or whose id is barred. */
export interface LateDetails {
  readonly refused_as: 'late' | 'barred'
}

/** `details` of the 404 of a kill that barred the id. */
export interface BarredDetails {
  readonly barred: true
}
