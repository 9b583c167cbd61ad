/** Who uses the page, and what that caller may do. */
import { createContext, type JSX } from 'preact'
import { useContext } from 'preact/hooks'
import type { Right } from '../../../shared/contract/rights.ts'
import type { SessionResponse } from '../../../shared/contract/session.ts'
import { lackOf, seesService } from '../model/session.ts'
import type { GraphSummary } from '../model/wire.ts'

/** Undefined until it is known. */
export const CurrentSession = createContext<SessionResponse | undefined>(undefined)

/** Why the caller may not do it, as `lackOf` says. */
export const useLack = (right: Right, submittedBy?: string): string | undefined =>
  lackOf(useContext(CurrentSession), right, submittedBy)

/** Why the caller may not cancel or pause the graph, run its tasks again in it, or run it again as a new graph. */
export function useGraphLacks({ submitted_by }: Pick<GraphSummary, 'submitted_by'>) {
  const [cancelLack, submitLack] = [useLack('cancel', submitted_by), useLack('submit')]
  const { name } = useContext(CurrentSession) ?? {}
  const isOfOthers = name !== undefined && submitted_by !== name
  return { cancelLack, submitLack, retryLack: submitLack ?? (isOfOthers ? cancelLack : undefined) }
}

/** Whose a graph is. Who sees the graphs of one tenant only needs no word about it. */
export function TenantLabel({ tenant }: { tenant: string | undefined }) {
  const session = useContext(CurrentSession)
  if (tenant === undefined || session === undefined || !seesService(session)) return null
  return (
    <span class="label" title={`Submitted with a token of the tenant ${tenant}`}>
      tenant {tenant}
    </span>
  )
}

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'disabled' | 'type'>

interface RightButtonProps extends ButtonProps {
  readonly type?: 'button' | 'submit'
  /** Why it is disabled, as `useLack` says. Undefined if the caller may press it. */
  readonly lack: string | undefined
  readonly disabled?: boolean
}

/** A button for what needs a right. Who lacks it sees why the button is disabled. */
export const RightButton = ({ type = 'button', lack, disabled = false, ...props }: RightButtonProps) => (
  <button {...props} type={type} disabled={disabled || lack !== undefined} title={lack} />
)
