/** The page of a service without graphs: three ways to submit the first graph. */
import { useContext } from 'preact/hooks'
import { isFenced } from '../model/session.ts'
import { serviceUrl } from './api.ts'
import { CopyLine } from './parts.tsx'
import { CurrentSession } from './session.tsx'

export function Empty() {
  const url = serviceUrl()
  const first = isFenced(useContext(CurrentSession))
    ? '"type": "noop"'
    : '"type": "shell", "params": {"command": "uname", "args": ["-sr"]}'
  return (
    <div class="empty">
      <h1>No graphs yet</h1>
      <p>
        A graph is a list of tasks and what each of them waits for. Submit one, and it appears here and moves while it
        runs.
      </p>
      <h2>With curl</h2>
      <CopyLine
        text={`curl -s ${url}/tasks -d '{"name": "first", "scope": "graph", "tasks": [
  {"id": "system", ${first}},
  {"id": "rest", "type": "sleep", "params": {"duration_ms": 3000}, "depends_on": ["system"]}
]}'`}
      />
      <h2>From an agent</h2>
      <CopyLine text={`claude mcp add --transport http taskmill ${url}/mcp`} />
      <p>Other hosts take the URL as it is:</p>
      <CopyLine text={`{"mcpServers": {"taskmill": {"type": "http", "url": "${url}/mcp"}}}`} />
      <h2>Here</h2>
      <p>
        <a class="button primary" href="#/submit">
          Submit an example
        </a>
      </p>
    </div>
  )
}
