/** The parameters of a runtime task. Pure. */
import { type TObject, Type } from '@sinclair/typebox'
import { ExecutionSpec, SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'

const { program, args, script, interpreter, env } = ExecutionSpec.properties

/** The fields of `execution`, whatever its kind. */
export const executionFields = { program, args, script, interpreter, env }

/** The parameters of a runtime task: the fields of a request, and the fields of `execution` at the same level. */
export const runtimeParameters: TObject = Type.Object({ ...executionFields, ...SubmitTaskRequest.properties })
