import { alert, field, hidden } from './forms.js'
import { escapeHtml, page } from './html.js'

export interface SignInFacts {
  readonly podName: string
  readonly host: string
  readonly action: string
  readonly formToken: string
  readonly username: string
  /** The request of a client that goes on afterwards, and who asks. */
  readonly request: string | undefined
  readonly clientName: string | undefined
  readonly wrong: string | undefined
  /** Where somebody without an account goes; undefined: nobody can sign up. */
  readonly signUp: string | undefined
}

export function signInPage(facts: SignInFacts): string {
  const { podName, host, action, formToken, username, request, clientName, wrong, signUp } = facts
  return page({
    title: `Sign in · ${podName}`,
    content: `<p class="soft small">${escapeHtml(podName)}</p>
<h1>Sign in</h1>
${clientName === undefined ? '' : `<p class="soft">to continue to <b><bdi>${escapeHtml(clientName)}</bdi></b></p>\n`}${alert(wrong)}<form method="post" action="${action}">
${hidden({ form: formToken, request })}
${field({
  name: 'username',
  label: 'Username',
  type: 'text',
  autocomplete: 'username',
  value: username,
  hint: `The part before the @ of your address at ${host}.`,
  focus: username === '',
})}
${field({
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
  focus: username !== '',
})}
<p class="actions"><button>Sign in</button></p>
</form>
${signUp === undefined ? '' : `<nav><a href="${escapeHtml(signUp)}">Create an account</a></nav>`}`,
  })
}
