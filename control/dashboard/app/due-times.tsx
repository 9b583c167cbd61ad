/** When a schedule is due next. */
import { remainingText, timeText } from '../model/amounts.ts'
import { timeIn } from '../model/schedule.ts'

export interface DueTimesProps {
  readonly times: readonly string[]
  readonly zone: string | undefined
  readonly isPaused?: boolean
  readonly now: number
}

/** Due times on the clock of the reader, and on that of the rule if it shows another time. */
export function DueTimes({ times, zone, isPaused = false, now }: DueTimesProps) {
  if (times.length === 0) return <>{isPaused ? 'nothing while it is paused' : 'nothing is due any more'}</>
  return (
    <ol class="next-times">
      {times.map((time, at) => {
        const here = timeText(time)
        const there = zone === undefined ? '' : timeIn(time, zone)
        const isOther = there !== '' && there !== here
        return (
          <li key={time}>
            <time dateTime={time}>{here}</time>
            {isOther && (
              <span class="quiet">
                {there} {zone}
              </span>
            )}
            {at === 0 && <span class="quiet">in {remainingText(Math.max(0, Date.parse(time) - now))}</span>}
          </li>
        )
      })}
    </ol>
  )
}
