/**
 * The tools of `POST /mcp` in their sets, in the order of their list. A list is short, because hosts hide long lists. The
 * set `graphs` is full (`MAX_LIST_BYTES` of its test): a further tool goes into another set.
 */
import type { Toolset } from '../../shared/contract/toolsets.ts'
import type { Tool } from './tool.ts'
import { answerApprovalTool } from './tools/answer-approval.ts'
import { cancelTool } from './tools/cancel.ts'
import { capabilitiesTool } from './tools/capabilities.ts'
import { changeScheduleTool } from './tools/change-schedule.ts'
import { getGraphTool } from './tools/get-graph.ts'
import { getLogsTool } from './tools/get-logs.ts'
import { getTaskTool } from './tools/get-task.ts'
import { getTaskFileTool } from './tools/get-task-file.ts'
import { listGraphsTool } from './tools/list-graphs.ts'
import { listSchedulesTool } from './tools/list-schedules.ts'
import { listTasksTool } from './tools/list-tasks.ts'
import { patchGraphTool } from './tools/patch-graph.ts'
import { pauseTool, resumeTool } from './tools/pause.ts'
import { putScheduleTool } from './tools/put-schedule.ts'
import { rerunGraphTool } from './tools/rerun-graph.ts'
import { retryTaskTool } from './tools/retry-task.ts'
import { runActionTool } from './tools/run-action.ts'
import { signalTaskTool } from './tools/signal-task.ts'
import { submitGraphTool } from './tools/submit-graph.ts'
import { waitTool } from './tools/wait.ts'

export const TOOLS_BY_SET: Readonly<Record<Toolset, readonly Tool[]>> = {
  graphs: [
    submitGraphTool,
    runActionTool,
    rerunGraphTool,
    waitTool,
    getTaskTool,
    listTasksTool,
    getGraphTool,
    listGraphsTool,
    getLogsTool,
    getTaskFileTool,
    answerApprovalTool,
    cancelTool,
    capabilitiesTool,
  ],
  schedules: [listSchedulesTool, putScheduleTool, changeScheduleTool],
  live: [signalTaskTool, pauseTool, resumeTool, retryTaskTool, patchGraphTool],
}

/** All of them. */
export const TOOLS: readonly Tool[] = Object.values(TOOLS_BY_SET).flat()
