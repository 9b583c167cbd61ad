/** The script and the style sheet of the dashboard. They are bundled at compile time and part of the executable. */
import { dashboardBundle } from '../dashboard/bundle.ts' with { type: 'macro' }

export const bundle = dashboardBundle()
