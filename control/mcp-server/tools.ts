/** The tools of `POST /mcp`, in the order of their list. The list is short, because hosts hide long lists. */
import type { Tool } from './tool.ts'
import { answerApprovalTool } from './tools/answer-approval.ts'
import { cancelTool } from './tools/cancel.ts'
import { capabilitiesTool } from './tools/capabilities.ts'
import { getGraphTool } from './tools/get-graph.ts'
import { getLogsTool } from './tools/get-logs.ts'
import { getTaskTool } from './tools/get-task.ts'
import { getTaskFileTool } from './tools/get-task-file.ts'
import { listGraphsTool } from './tools/list-graphs.ts'
import { listTasksTool } from './tools/list-tasks.ts'
import { rerunGraphTool } from './tools/rerun-graph.ts'
import { runActionTool } from './tools/run-action.ts'
import { submitGraphTool } from './tools/submit-graph.ts'
import { waitTool } from './tools/wait.ts'

export const TOOLS: readonly Tool[] = [
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
]
