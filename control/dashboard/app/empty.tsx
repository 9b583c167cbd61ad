/** The page of a service without graphs: three ways to submit the first graph. */
import { CopyLine } from './parts.tsx'

export function Empty() {
  const origin = location.origin
  return (
    <div class="empty">
      <h1>No graphs yet</h1>
      <p>
        A graph is a list of tasks and what each of them waits for. Submit one, and it appears here and moves while it
        runs.
      </p>
      <h2>With curl</h2>
      <CopyLine
        text={`curl -s ${origin}/tasks -d '{"name": "first", "scope": "graph", "tasks": [
  {"id": "system", "type": "shell", "params": {"command": "uname", "args": ["-sr"]}},
  {"id": "rest", "type": "sleep", "params": {"duration_ms": 3000}, "depends_on": ["system"]}
]}'`}
      />
      <h2>From an agent</h2>
      <CopyLine text={`claude mcp add --transport http taskmill ${origin}/mcp`} />
      <p>Other hosts take the URL as it is:</p>
      <CopyLine text={`{"mcpServers": {"taskmill": {"type": "http", "url": "${origin}/mcp"}}}`} />
      <h2>Here</h2>
      <p>
        <a class="button primary" href="#/submit">
          Submit an example
        </a>
      </p>
    </div>
  )
}
