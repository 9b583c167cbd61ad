/** The script and the style sheet of the dashboard: made while this file is compiled, and part of the executable. */
import { dashboardBundle } from '../dashboard/bundle.ts' with { type: 'macro' }

export const bundle = dashboardBundle()
