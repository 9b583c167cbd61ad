/** What this host lets the runtime service enforce: its own `doctor` tries it. */
import type { DoctorReport } from '../../shared/contract/doctor-report.ts'
import { findSibling } from '../../shared/process/sibling.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { type Finding, fine, wrong } from './finding.ts'
import { runProgram } from './program.ts'

const PROGRAM = 'taskmill-runtime'

export async function lookAtHost(env: Readonly<Record<string, string | undefined>>): Promise<Finding[]> {
  const path = findSibling(PROGRAM, env.PATH)
  if (path === null) return []
  const ran = await runProgram([path, 'doctor', '--json'], env)
  const report = 'fault' in ran ? undefined : jsonOrUndefined(ran.stdout)
  if (!isReport(report)) {
    const fault = 'fault' in ran ? ran.fault : ran.stderr || ran.stdout
    return [wrong('host', `${path} doctor did not answer: ${fault}`, 'Call it to see why.')]
  }
  const { platform, launcher, capacity, capabilities } = report
  return [
    fine('platform', platform),
    fine('launcher', launcher),
    ...capacity.map((line) => fine('capacity', line)),
    ...capabilities.map(({ name, available, reason = '', remedy = '' }) =>
      available ? fine(name, 'available') : wrong(name, reason, remedy),
    ),
  ]
}

const isReport = (value: unknown): value is DoctorReport =>
  isObject(value) &&
  typeof value.platform === 'string' &&
  Array.isArray(value.capacity) &&
  Array.isArray(value.capabilities) &&
  value.capabilities.every((one) => isObject(one) && typeof one.name === 'string')
