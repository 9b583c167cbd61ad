/** The entry of the page. Its HTML has the frame, which is painted before the first rendering takes the thread. */
import { render } from 'preact'
import { App } from './app.tsx'
import { endEarly, framePainted } from './early-work.ts'
import { signInByLink } from './sign-in.tsx'

void Promise.all([signInByLink(), framePainted()]).then(([linkFault]) => {
  render(<App linkFault={linkFault} />, document.body)
  document.querySelector('.start-fault')?.remove()
  endEarly()
})
