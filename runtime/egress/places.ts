/**
 * The places for connections of all tasks.
 *
 * One part is divided: each task that may run has as many places for itself. The rest goes to whoever asks first. So a task
 * may have many connections, and one that takes all it gets leaves the others their own.
 */

/** The part of all places that is divided. */
export const DIVIDED_PART = 1 / 2

/** Places that each of `tasks` tasks has for itself. */
export const placesPerTask = (places: number, tasks: number): number => Math.floor((places * DIVIDED_PART) / tasks)

export interface TaskPlaces {
  /** Takes a place. False: there is none. */
  readonly enter: () => boolean
  /** Gives a place back. */
  readonly leave: () => void
}

export class Places {
  readonly #perTask: number
  #common: number
  #taken = 0

  /** `tasks`: as many have places at a time. */
  constructor(places: number, tasks: number) {
    this.#perTask = placesPerTask(places, tasks)
    this.#common = places - this.#perTask * tasks
  }

  /** Places that are taken. */
  get taken(): number {
    return this.#taken
  }

  forTask(): TaskPlaces {
    let [ofTask, common] = [0, 0]
    return {
      enter: () => {
        if (ofTask < this.#perTask) ofTask++
        else if (this.#common > 0) {
          this.#common--
          common++
        } else return false
        this.#taken++
        return true
      },
      leave: () => {
        this.#taken--
        if (common === 0) ofTask--
        else {
          common--
          this.#common++
        }
      },
    }
  }
}
