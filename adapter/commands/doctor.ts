/** `taskmill doctor`: looks at everything that `taskmill up` needs, and says what to do about what is wrong. */
import { VERSION } from '../../shared/process/version.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'

export const doctor = defineCommand({
  summary:
    'Look at executables, disk, token, ports, services and what this host can enforce. Exit code 1 if anything is wrong.',
  usage: '',
  settings: {},
  maxArguments: 0,
  async run({ env }): Promise<Answer> {
    const [{ lookAtExecutables }, { lookAtFiles }, { lookAtServices }, { lookAtHost }] = await Promise.all([
      import('../doctor/executables.ts'),
      import('../doctor/files.ts'),
      import('../doctor/services.ts'),
      import('../doctor/host.ts'),
    ])
    const parts = await Promise.all([lookAtExecutables(env), lookAtFiles(env), lookAtServices(env), lookAtHost(env)])
    const findings = parts.flat()
    const healthy = findings.every(({ ok }) => ok)
    return {
      data: { healthy, version: VERSION, findings },
      exitCode: healthy ? EXIT.success : EXIT.error,
      table: async (look) => (await import('../table/doctor.ts')).doctorLines(findings, look),
    }
  },
})
