/** The entry of the page. Its HTML has the frame, which is painted before the first rendering takes the thread. */
import { render } from 'preact'
import { App } from './app.tsx'
import { endEarly, framePainted } from './early-work.ts'

void framePainted().then(() => {
  render(<App />, document.body)
  document.querySelector('.start-fault')?.remove()
  endEarly()
})
