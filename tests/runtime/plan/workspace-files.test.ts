import { expect, test } from 'bun:test'
import { ensureFiles } from '../../../runtime/plan/workspace-files.ts'

test('files of workspaces need Linux', () => {
  expect(() => ensureFiles({ outputs: ['a'] }, 'darwin')).toThrow(
    'outputs needs a runtime service on Linux (this one runs on darwin)',
  )
  expect(() => ensureFiles({ inputs: {}, outputs: [] }, 'darwin')).toThrow('inputs needs')
  ensureFiles({ outputs: ['a'] }, 'linux')
  ensureFiles({}, 'darwin')
})
