/** How long a test of load lasts: TASKMILL_LOAD_SECONDS, or the time that the test has for a usual or a nightly run. */
export function secondsOf({ usual, nightly }: { readonly usual: number; readonly nightly: number }): number {
  const { TASKMILL_LOAD_SECONDS: asked = '', TASKMILL_NIGHTLY } = process.env
  if (asked === '') return TASKMILL_NIGHTLY === undefined ? usual : nightly
  if (/^[1-9]\d{0,5}$/.test(asked)) return Number(asked)
  throw new Error(`TASKMILL_LOAD_SECONDS is ${JSON.stringify(asked)}: expected whole seconds from 1 to 999999`)
}
